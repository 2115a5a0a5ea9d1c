#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_schema.py SCHEMA JSON: checks a document against a schema. Supports type, enum, pattern, required, properties, additionalProperties
and items; a schema with other keywords is an error."""
import json
import re
import sys

KNOWN = {"$schema", "title", "description", "type", "enum", "pattern", "required", "properties", "additionalProperties", "items"}
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def check(value, schema, where, problems):
    for word in schema.keys() - KNOWN:
        problems.append(f"{where}: unsupported schema keyword '{word}'")
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind in ("integer", "number") and isinstance(value, bool))):
        problems.append(f"{where}: expected {kind}, got {type(value).__name__}")
        return
    if "enum" in schema and value not in schema["enum"]:
        problems.append(f"{where}: expected one of {schema['enum']}, got '{value}'")
    if "pattern" in schema and not re.search(schema["pattern"], value):
        problems.append(f"{where}: expected a match of {schema['pattern']}, got '{value}'")
    if isinstance(value, dict):
        properties, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        problems += [f"{where}: '{key}' is missing" for key in schema.get("required", ()) if key not in value]
        for key, entry in value.items():
            if key in properties:
                check(entry, properties[key], f"{where}.{key}", problems)
            elif others is False:
                problems.append(f"{where}: '{key}' is not in the schema")
            elif isinstance(others, dict):
                check(entry, others, f"{where}.{key}", problems)
    if isinstance(value, list) and "items" in schema:
        for i, entry in enumerate(value):
            check(entry, schema["items"], f"{where}[{i}]", problems)


def main():
    schema, document = (json.loads(open(path, encoding="utf-8").read()) for path in sys.argv[1:3])
    problems = []
    check(document, schema, "$", problems)
    print(*problems, sep="\n", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
