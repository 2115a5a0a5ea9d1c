# SPDX-License-Identifier: Apache-2.0
"""Graphs as SVG: boxes in rows, from top to bottom, and gradients next to what they belong to, from bottom to top."""
from html import escape
from typing import Dict, List, NamedTuple, Optional, Set, Tuple


class Box(NamedTuple):
    """A box of a picture."""

    name: str
    text: str  # the second line
    device: str
    moved: bool  # has a thick border
    has_kernel: bool  # otherwise it has a dashed border
    details: str  # shown where the mouse points
    inputs: List[str]  # the names of other boxes
    gradient_of: Optional[str]  # the name of the box that this one stands next to


_FILLS = ("#dbeafe", "#dcfce7", "#fef3c7", "#fce7f3", "#ede9fe", "#e5e7eb")
_CHARACTER = 6.7  # width of a character of the font
_MAX_TEXT = 40
_HEIGHT, _ROW, _GAP, _LANE, _MARGIN = 38, 62, 24, 10, 14
_LEGEND = 30


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT else text[:_MAX_TEXT - 1] + "…"


def _width(box: Box) -> float:
    return max(90.0, _CHARACTER * max(len(_short(box.name)), len(_short(box.text))) + 20)


class _Layout:
    """Rows by the longest path from an input. An edge across several rows gets a place in each of them, so that it passes between boxes."""

    def __init__(self, boxes: List[Box], read_by_gradients: Set[str]):
        by_name = {each.name: each for each in boxes}
        self.rank: Dict[str, int] = {}
        for each in boxes:  # producers come before their readers
            self.rank[each.name] = 1 + max((self.rank[name] for name in each.inputs if name in self.rank), default=-1)
        self.rows: List[List[str]] = [[] for _ in range(max(self.rank.values(), default=-1) + 1)]
        self.widths = {each.name: _width(each) for each in boxes}
        self.routes: Dict[Tuple[str, str], List[str]] = {}  # of an edge: the places it passes
        neighbours: Dict[str, List[str]] = {}
        for each in boxes:
            self.rows[self.rank[each.name]].append(each.name)
            for name in each.inputs:
                if name not in by_name or self.rank.get(name, 0) >= self.rank[each.name]:
                    continue
                route = []
                for row in range(self.rank[name] + 1, self.rank[each.name]):
                    place = f"{name}\n{each.name}\n{row}"
                    self.rows[row].append(place)
                    self.widths[place] = _LANE
                    route.append(place)
                self.routes[name, each.name] = route
                path = [name, *route, each.name]
                for upper, lower in zip(path, path[1:]):
                    neighbours.setdefault(lower, []).append(upper)
                    neighbours.setdefault(upper, []).append(lower)
        self.x: Dict[str, float] = {}
        self._place(neighbours, read_by_gradients)

    def _place(self, neighbours: Dict[str, List[str]], read_by_gradients: Set[str]) -> None:
        """Orders each row by the mean place of the neighbours above or below it, in some sweeps, and centres the rows. What gradients read
        comes last, next to their column."""
        order = {name: float(i) for row in self.rows for i, name in enumerate(row)}
        rank_of = {name: i for i, row in enumerate(self.rows) for name in row}
        for sweep in range(4):
            for i in (range(len(self.rows)) if sweep % 2 == 0 else reversed(range(len(self.rows)))):
                side = i - 1 if sweep % 2 == 0 else i + 1
                means = {}
                for name in self.rows[i]:
                    near = [order[each] for each in neighbours.get(name, ()) if rank_of[each] == side]
                    means[name] = sum(near) / len(near) if near else order[name]
                self.rows[i].sort(key=lambda name: means[name])
                order.update({name: float(position) for position, name in enumerate(self.rows[i])})
        for row in self.rows:
            row.sort(key=lambda name: name in read_by_gradients)
        self.width = max((sum(self.widths[name] for name in row) + _GAP * (len(row) - 1) for row in self.rows), default=0.0)
        for row in self.rows:
            x = (self.width - sum(self.widths[name] for name in row) - _GAP * (len(row) - 1)) / 2
            for name in row:
                self.x[name] = x + self.widths[name] / 2
                x += self.widths[name] + _GAP


def _curve(points: List[Tuple[float, float]], line: str) -> str:
    (x, y), path = points[0], f"M{points[0][0]:.0f} {points[0][1]:.0f}"
    for to_x, to_y in points[1:]:
        middle = (y + to_y) / 2
        path += f" C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}"
        x, y = to_x, to_y
    return f"<path d='{path}' fill='none' {line}/>"


def picture(boxes: List[Box]) -> str:
    """The SVG of a graph; a box comes after those that it reads."""
    forward = [each for each in boxes if each.gradient_of is None]
    gradients = [each for each in boxes if each.gradient_of is not None]
    names = {each.name for each in forward}
    steps = [each for each in forward if any(name.startswith("gradient/") for name in each.inputs)] if gradients else []  # updates of parameters
    layout = _Layout([each for each in forward if each not in steps], {name for each in gradients for name in each.inputs})
    centre: Dict[str, Tuple[float, float]] = {name: (_MARGIN + layout.x[name], _MARGIN + _LEGEND + row * _ROW + _HEIGHT / 2)
                                              for row, line in enumerate(layout.rows) for name in line}
    widths = {each.name: _width(each) for each in boxes}
    # Gradients stand in a second column, in the row of what they belong to; the updates in a third one.
    left = _MARGIN + layout.width + (3 * _GAP if gradients else 0)
    right = left
    filled: Dict[int, float] = {}
    for each in gradients:
        row = layout.rank.get(each.gradient_of or "", 0) if each.gradient_of in names else 0
        x = filled.get(row, left)
        centre[each.name] = (x + widths[each.name] / 2, _MARGIN + _LEGEND + row * _ROW + _HEIGHT / 2)
        filled[row] = x + widths[each.name] + _GAP
        right = max(right, x + widths[each.name])
    for i, each in enumerate(steps):
        centre[each.name] = (right + 3 * _GAP + widths[each.name] / 2, _MARGIN + _LEGEND + i * _ROW + _HEIGHT / 2)
    width = max([centre[each.name][0] + widths[each.name] / 2 for each in boxes] + [layout.width]) + _MARGIN
    height = max([centre[each.name][1] + _HEIGHT / 2 for each in boxes] + [0.0]) + _MARGIN
    devices = list(dict.fromkeys(each.device for each in boxes))
    fills = {device: _FILLS[i % len(_FILLS)] for i, device in enumerate(devices)}
    width = max(width, _MARGIN * 2 + sum(_CHARACTER * len(device) + 40 for device in devices))

    parts = []
    by_name = {each.name: each for each in boxes}
    for each in boxes:
        x, y = centre[each.name]
        for name in each.inputs:
            if name not in centre:
                continue
            from_x, from_y = centre[name]
            crossing = by_name[name].device != each.device
            line = "stroke='#ea580c' stroke-width='1.6' marker-end='url(#tenon-copied)'" if crossing else "stroke='#64748b' marker-end='url(#tenon-arrow)'"
            if (name, each.name) in layout.routes:
                places = [centre[place] for place in layout.routes[name, each.name]]
                parts.append(_curve([(from_x, from_y + _HEIGHT / 2), *places, (x, y - _HEIGHT / 2 - 1)], line))
            elif from_x == x or (each.gradient_of is not None and by_name[name].gradient_of is not None and abs(from_y - y) > 1):
                up = 1 if from_y > y else -1
                parts.append(_curve([(from_x, from_y - up * _HEIGHT / 2), (x, y + up * (_HEIGHT / 2 + 1))], line))
            else:  # from column to column
                side = 1 if x > from_x else -1
                start, end = from_x + side * widths[name] / 2, x - side * (widths[each.name] / 2 + 1)
                bend = max(start, right) if each in steps else start  # past the other gradients
                middle = (bend + end) / 2
                faint = line if crossing else line.replace("#64748b", "#cbd5e1")
                parts.append(f"<path d='M{start:.0f} {from_y:.0f} H{bend:.0f} C{middle:.0f} {from_y:.0f} {middle:.0f} {y:.0f} {end:.0f} {y:.0f}' fill='none' {faint}/>")
    for each in boxes:
        x, y = centre[each.name]
        border = "stroke='#ea580c' stroke-width='2.5'" if each.moved else "stroke='#475569'"
        border += "" if each.has_kernel else " stroke-dasharray='4 3' fill-opacity='0.4'"
        parts.append(f"<g><title>{escape(each.details)}</title><rect x='{x - widths[each.name] / 2:.0f}' y='{y - _HEIGHT / 2:.0f}' "
                     f"width='{widths[each.name]:.0f}' height='{_HEIGHT}' rx='5' fill='{fills[each.device]}' {border}/>"
                     f"<text x='{x:.0f}' y='{y - 4:.0f}' font-weight='bold'>{escape(_short(each.name))}</text>"
                     f"<text x='{x:.0f}' y='{y + 11:.0f}'>{escape(_short(each.text))}</text></g>")
    at = float(_MARGIN)
    for device in devices:
        parts.append(f"<rect x='{at:.0f}' y='{_MARGIN}' width='14' height='14' rx='3' fill='{fills[device]}' stroke='#475569'/>"
                     f"<text x='{at + 20:.0f}' y='{_MARGIN + 11}' text-anchor='start'>{escape(device)}</text>")
        at += _CHARACTER * len(device) + 40
    arrows = "".join(f"<marker id='{name}' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='7' markerHeight='7' orient='auto'>"
                     f"<path d='M0 0 L8 4 L0 8 z' fill='{colour}'/></marker>" for name, colour in (("tenon-arrow", "#64748b"), ("tenon-copied", "#ea580c")))
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{height:.0f}' viewBox='0 0 {width:.0f} {height:.0f}' "
            "style='max-width: 100%; height: auto' font-family='DejaVu Sans Mono, Menlo, Consolas, monospace' font-size='11' text-anchor='middle' fill='#0f172a'>"
            f"<defs>{arrows}</defs><rect width='100%' height='100%' fill='white'/>{''.join(parts)}</svg>")
