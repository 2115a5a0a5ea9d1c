def definition_modules(schema): return {}
