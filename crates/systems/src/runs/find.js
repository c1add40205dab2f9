// Finds elements as Chrome's Recorder does. Arguments: alternatives, each a chain of selectors; a condition, or null.
// Without a condition: [the first visible element, the selector that found it], or null.
// With one (waitForElement): whether it holds.
const [alternatives, condition] = arguments;

function* everyElement(root) {
  for (const element of root.querySelectorAll("*")) {
    yield element;
    if (element.shadowRoot) yield* everyElement(element.shadowRoot);
  }
}

const textOf = (element) => (element.value !== undefined && typeof element.value === "string" && element.value) || element.textContent || "";

function matches(root, selector) {
  if (selector.startsWith("aria/")) {
    const [, name, role] = selector.slice(5).match(/^(.*?)(?:\[role="([^"]*)"\])?$/s);
    return [...everyElement(root)].filter((e) => (!name || e.computedName === name) && (!role || e.computedRole === role));
  }
  if (selector.startsWith("text/")) {
    const text = selector.slice(5);
    const found = [...everyElement(root)].filter((e) => !["SCRIPT", "STYLE"].includes(e.tagName) && textOf(e).includes(text));
    // The innermost ones.
    return found.filter((e) => !found.some((other) => other !== e && e.contains(other)));
  }
  if (selector.startsWith("xpath/")) {
    const found = document.evaluate(selector.slice(6), root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
    return Array.from({ length: found.snapshotLength }, (_, n) => found.snapshotItem(n)).filter((node) => node.nodeType === 1);
  }
  if (selector.startsWith("pierce/")) {
    return [...everyElement(root)].filter((e) => e.matches(selector.slice(7)));
  }
  return [...root.querySelectorAll(selector)];
}

// All but the last of a chain are ancestors; inside a shadow host means inside its shadow root.
const followed = (chain) =>
  chain.reduce((roots, selector, n) => roots.flatMap((root) => matches((n > 0 && root.shadowRoot) || root, selector)), [document]);

const isVisible = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;

if (condition === null) {
  for (const chain of alternatives) {
    const element = followed(chain).find(isVisible);
    if (element) return [element, chain.join(" ")];
  }
  return null;
}

const fits = (element) =>
  Object.entries(condition.properties || {}).every(([name, value]) => JSON.stringify(element[name]) === JSON.stringify(value)) &&
  Object.entries(condition.attributes || {}).every(([name, value]) => element.getAttribute(name) === value);
const count = condition.count ?? 1;
// In order: the first alternative that finds something counts.
let found = [];
for (const chain of alternatives) {
  found = followed(chain).filter(fits);
  if (found.length > 0) break;
}
if (condition.visible !== undefined || count > 0) found = found.filter((element) => isVisible(element) === (condition.visible ?? true));
return { "==": found.length === count, "<=": found.length <= count }[condition.operator] ?? found.length >= count;
