"""Contrast of every piece of text that a page shows, by WCAG 2's formula, from the colours that the browser computed.

Whatever notation the colours are in, a canvas tells them as red, green and blue. Text on pictures and in canvases is not measured, and
text of disabled buttons needs no contrast (WCAG 1.4.3).
"""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

# Large text (24 px, or 18.66 px and bold) needs 3:1, other text 4.5:1.
_MEASURE = """() => {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgba = (colour) => {
    if (!known.has(colour)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = colour;
      pen.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (top, below) => [0, 1, 2].map((at) => top[at] * top[3] + below[at] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(rgba(getComputedStyle(at).backgroundColor));
      if (at.matches("dialog") || layers[layers.length - 1][3] === 1) break;
    }
    return layers.reduceRight((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const light = (colour) => {
    const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = colour.slice(0, 3).map((value) => linear(value / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const all = { opacityProperty: true, visibilityProperty: true };
  const shown = (element) => element.checkVisibility(all) && element.getClientRects().length > 0;
  const clipped = (element) => element.closest("h1") !== null && element.getBoundingClientRect().width <= 1;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!text || element.closest("script, style, option, title, :disabled") || !shown(element) || clipped(element)) continue;
    const style = getComputedStyle(element);
    const ground = behind(element);
    const ink = over(rgba(element.closest("svg") ? style.fill : style.color), ground);
    const [least, most] = [light(ink), light(ground)].sort((one, other) => one - other);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    found.push({ text: text.slice(0, 60), ratio: (most + 0.05) / (least + 0.05), needed: large ? 3 : 4.5, colour: style.color });
  }
  return found;
}"""


def measured(page: Page) -> list[dict[str, Any]]:
    """Each piece of text with its ratio and what it needs."""
    found: list[dict[str, Any]] = page.evaluate(_MEASURE)
    return found


def too_faint(page: Page) -> list[str]:
    """Text that cannot be read well; an assertion when there is no text at all."""
    found = measured(page)
    assert found, "there is nothing to be read"
    return sorted({f"{entry['ratio']:.2f} {entry['colour']}: {entry['text']}" for entry in found if entry["ratio"] < entry["needed"]})
