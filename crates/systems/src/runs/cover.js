// Hides what shows a secret, before a screenshot is taken. Arguments: the secrets. Returns whether all of the page could be looked at.
const [secrets] = arguments;
const shows = (text) => typeof text === "string" && secrets.some((secret) => text.includes(secret));
const covered = [];
let complete = true;

function look(root) {
  for (const element of root.querySelectorAll("*")) {
    const inside = [...element.children].some((child) => shows(child.textContent));
    if (shows(element.value) || shows(element.placeholder) || shows(element.alt) || (shows(element.textContent) && !inside)) {
      covered.push([element, element.getAttribute("style")]);
      element.style.setProperty("transition", "none", "important");
      element.style.setProperty("opacity", "0", "important");
    }
    if (element.shadowRoot) look(element.shadowRoot);
    if (["IFRAME", "FRAME"].includes(element.tagName)) {
      // A frame of another site cannot be looked at.
      if (element.contentDocument) look(element.contentDocument);
      else if (element.getClientRects().length > 0) complete = false;
    }
  }
}

look(document);
window.__gleanerCovered = covered;
return complete;
