"use strict";
// Everything that comes from an app goes onto the page as text, never as markup.
const at = id => document.getElementById(id);
const token = document.querySelector('meta[name="gleaner-token"]').content;
const words = { new: "Not served", starting: "Starting", serving: "Serving", offline: "Its place does not answer", stopped: "Stopped", failed: "Cannot be served" };
// Larger than any message that could be valid; the agent looks closer.
const LARGEST_MESSAGE = 32 * 1024;
const AWAY = "The agent does not answer. Is it running?";

let view = { apps: [], models: [] };
let shown = null;
/** By the name of the app: its frame, and what it asks for and is not decided. */
const frames = new Map();
const requests = new Map();
/** What the person has answered or put off, so that an app cannot ask it over and over. */
const answered = new Set();
const question = (name, request) => JSON.stringify([name, request.asks]);
let onScreen = null;

const make = (tag, properties, ...children) => {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
};
const many = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
const ago = at => {
  const s = Math.max(0, Date.now() / 1000 - at);
  return s < 90 ? "just now" : s < 5400 ? `${Math.round(s / 60)} min ago` : s < 172800 ? `${Math.round(s / 3600)} h ago` : `${Math.round(s / 86400)} days ago`;
};
const tell = text => { at("notice").textContent = text; };

async function call(path, body) {
  const headers = { "x-gleaner-token": token };
  if (body) headers["content-type"] = "application/json";
  const answer = await fetch(`/host/api/${path}`, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  let value = {};
  try { value = JSON.parse(text); } catch { value = { error: text.trim() }; }
  if (!answer.ok) throw new Error(value.error || `the agent answered ${answer.status}`);
  return value;
}

/** Shows trouble where the person looks, and gives back whether there was none. */
async function attempt(act) {
  try {
    await act();
    tell("");
    return true;
  } catch (error) {
    tell(error instanceof TypeError ? AWAY : error.message);
    return false;
  }
}

function frameOf(app) {
  let frame = frames.get(app.name);
  if (!frame) {
    frame = make("iframe", { title: app.name, src: app.url, referrerPolicy: "no-referrer", hidden: true });
    // Its own origin, which is never ours, is what it keeps its session under and what we know it by.
    frame.setAttribute("sandbox", "allow-scripts allow-same-origin allow-forms allow-popups allow-modals allow-downloads");
    frame.setAttribute("allow", "");
    frames.set(app.name, frame);
    at("frames").append(frame);
  }
  return frame;
}

const current = () => view.apps.find(app => app.name === shown);

function render() {
  if (!current()) shown = view.apps[0]?.name ?? null;
  for (const [name, frame] of frames) {
    if (!view.apps.some(app => app.name === name)) {
      frame.remove();
      frames.delete(name);
      requests.delete(name);
    }
  }
  view.apps.forEach(frameOf);
  const items = view.apps.map(app => {
    const button = make("button", {}, make("span", { className: "dot" }), make("span", {}, app.name));
    button.dataset.state = app.state;
    button.dataset.app = app.name;
    if (app.name === shown) button.setAttribute("aria-current", "true");
    if (requests.has(app.name)) button.append(make("span", { className: "badge" }, "asks"));
    button.setAttribute("aria-label", `${app.name}: ${words[app.state]}${requests.has(app.name) ? ", asks for something" : ""}`);
    return make("li", {}, button);
  });
  const focused = document.activeElement?.dataset?.app;
  at("apps").replaceChildren(...items);
  if (focused) at("apps").querySelector(`[data-app=${CSS.escape(focused)}]`)?.focus();

  const app = current();
  at("empty").hidden = Boolean(app);
  at("bar").hidden = !app;
  for (const [name, frame] of frames) frame.hidden = name !== shown;
  if (!app) return;
  at("bar").dataset.state = app.state;
  at("app-name").textContent = app.name;
  at("app-state").textContent = words[app.state];
  at("app-place").textContent = app.agreed ? `· ${app.agreed.tables.join(", ")} at ${app.agreed.url}` : `· ${app.origin}`;
  at("app-problem").hidden = !app.problem;
  at("app-problem").textContent = app.problem ? `${app.problem} (${ago(app.since)})` : "";
  const last = app.problem ? null : app.last_error;
  at("app-error").hidden = !last;
  at("app-error").textContent = last ? `Last error, ${ago(last.at)}: ${last.message}` : "";
  at("review").hidden = !requests.has(app.name);
  at("start").textContent = app.state === "failed" ? "Try again" : "Start";
  at("start").hidden = !["stopped", "failed"].includes(app.state);
  at("stop").hidden = !["starting", "serving", "offline", "failed"].includes(app.state);
  at("revoke").hidden = !app.agreed;
  const used = app.usage;
  at("app-usage").hidden = !used;
  at("app-usage").textContent = used
    ? `Models, since the agent started: ${many(used.requests, "request")}, ${used.failed} failed, ${many(used.prompt_tokens + used.completion_tokens, "token")}` : "";
}

async function refresh() {
  view = await call("apps");
  render();
}

/** Tells an app what became of its message: to its own origin alone, wherever its frame has gone meanwhile. */
function answer(name, payload) {
  const app = view.apps.find(app => app.name === name);
  const frame = frames.get(name);
  if (app && frame) frame.contentWindow?.postMessage({ type: "SUPABASE_CONFIG_RESULT", payload }, app.origin);
}

function granted(name, decision) {
  const ai = { baseUrl: `${location.origin}/v1`, token: decision.token, models: view.models.map(model => model.name) };
  answer(name, { granted: true, state: decision.state, problem: decision.problem, ai });
}

// Only the frame of an app, and only as long as it shows the app's own origin.
window.addEventListener("message", async event => {
  const app = view.apps.find(app => frames.get(app.name)?.contentWindow === event.source && app.origin === event.origin);
  if (!app || event.data?.type !== "SUPABASE_CONFIG") return;
  await attempt(async () => {
    let message;
    try { message = JSON.stringify(event.data); } catch { return; }
    if (!message || message.length > LARGEST_MESSAGE) return;
    let decision;
    try {
      decision = await call("ask", { name: app.name, message: JSON.parse(message) });
    } catch (error) {
      answer(app.name, { granted: false, reason: "invalid", problem: error.message });
      throw new Error(`${app.name} sent something that cannot be used: ${error.message}`);
    }
    if (decision.decision === "granted") {
      requests.delete(app.name);
      granted(app.name, decision);
      return refresh();
    }
    requests.set(app.name, decision);
    render();
    askNext();
  });
});

function askNext() {
  if (document.querySelector("dialog[open]")) return;
  const next = [...requests].find(([name, request]) => !answered.has(question(name, request)));
  if (next) ask(...next);
}

function ask(name, request) {
  onScreen = { name, request };
  const { asks, changed } = request;
  shown = name;
  render();
  at("ask-title").textContent = changed.length ? `${name} asks for something else now` : `Serve ${name}?`;
  at("ask-what").textContent = `This agent would claim work from the project below, process it on this machine, and write the results back.`;
  const filters = Object.entries(asks.filters).map(([table, filter]) => `${table}: ${filter}`);
  const rows = [
    ["App", "appName", asks.appName], ["From", "", view.apps.find(app => app.name === name).origin], ["Project", "url", asks.url],
    ["Anon key", "anonKey", asks.anonKey], ["Tables", "tables", asks.tables.join(", ")], ["Filters", "filters", filters.join("\n") || "none"],
  ];
  at("ask-details").replaceChildren(...rows.flatMap(([label, field, text]) =>
    [make("dt", {}, label), make("dd", { className: changed.includes(field) ? "changed" : "" }, make("code", {}, text))]));
  at("ask-problem").hidden = true;
  at("yes").disabled = at("no").disabled = false;
  at("ask").showModal();
}

async function decide(yes) {
  const { name, request } = onScreen;
  at("yes").disabled = at("no").disabled = true;
  try {
    const decision = await call(yes ? "agree" : "decline", { name, proposal: request.proposal });
    answered.add(question(name, request));
    if (requests.get(name) === request) requests.delete(name);
    if (yes) granted(name, decision);
    else answer(name, { granted: false, reason: "declined" });
    at("ask").close();
    await attempt(refresh);
    askNext();
  } catch (error) {
    at("ask-problem").textContent = error.message;
    at("ask-problem").hidden = false;
    at("no").disabled = false;
  }
}

/** Asks back before something is lost. */
function sure(title, what, word) {
  at("sure-title").textContent = title;
  at("sure-what").textContent = what;
  at("sure-yes").textContent = word;
  at("sure").returnValue = "";
  at("sure").showModal();
  return new Promise(resolve => at("sure").addEventListener("close", () => resolve(at("sure").returnValue === "yes"), { once: true }));
}

at("yes").addEventListener("click", () => decide(true));
at("no").addEventListener("click", () => decide(false));
// Escape puts it off: the app's line keeps saying that it asks.
at("ask").addEventListener("cancel", () => { answered.add(question(onScreen.name, onScreen.request)); });
at("ask").addEventListener("close", askNext);
at("sure-yes").addEventListener("click", () => at("sure").close("yes"));
at("sure-no").addEventListener("click", () => at("sure").close(""));
at("review").addEventListener("click", () => ask(shown, requests.get(shown)));

at("apps").addEventListener("click", event => {
  const name = event.target.closest("button")?.dataset.app;
  if (name) { shown = name; render(); }
});
at("start").addEventListener("click", () => attempt(async () => { await call("start", { name: shown }); await refresh(); }));
at("stop").addEventListener("click", () => attempt(async () => { await call("stop", { name: shown }); await refresh(); }));
at("reload").addEventListener("click", () => { const app = current(); if (app) frames.get(app.name).src = app.url; });
at("revoke").addEventListener("click", async () => {
  const name = shown;
  if (!await sure(`Revoke ${name}?`, "The work for it ends, and so does its access to the models. It has to ask again.", "Revoke")) return;
  await attempt(async () => {
    await call("revoke", { name });
    // It may ask again, and be heard.
    for (const known of [...answered]) if (JSON.parse(known)[0] === name) answered.delete(known);
    answer(name, { granted: false, reason: "revoked" });
    await refresh();
  });
});
at("remove").addEventListener("click", async () => {
  const name = shown;
  if (!await sure(`Remove ${name}?`, "It disappears from this page, and everything you allowed it ends.", "Remove")) return;
  if (await attempt(() => call("remove", { name }))) location.reload();
});

at("open-add").addEventListener("click", () => { at("add-problem").hidden = true; at("add-form").reset(); at("add").showModal(); });
at("add-cancel").addEventListener("click", () => at("add").close());
at("add-form").addEventListener("submit", async event => {
  event.preventDefault();
  try {
    await call("apps", { name: at("add-name").value, url: at("add-url").value });
    // Which frames this page may have is settled when it is loaded.
    location.reload();
  } catch (error) {
    at("add-problem").textContent = error.message;
    at("add-problem").hidden = false;
  }
});

attempt(refresh);
// What an app did wrong stays to be read; only trouble with the agent itself comes and goes here.
async function look() {
  if (document.hidden) return;
  try {
    await refresh();
    if (at("notice").textContent === AWAY) tell("");
  } catch { tell(AWAY); }
}
setInterval(look, 5000);
document.addEventListener("visibilitychange", look);
