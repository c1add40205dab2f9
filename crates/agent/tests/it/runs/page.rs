//! The page under test.

use axum::Router;
use axum::extract::{Query, State};
use axum::response::Html;
use axum::routing::get;
use serde::Deserialize;
use std::sync::{Arc, Mutex};

/// What browsers asked for.
pub(super) type Seen = Arc<Mutex<Vec<String>>>;

#[derive(Deserialize)]
struct Other {
    to: Option<String>,
}

pub(super) fn router(seen: Seen) -> Router {
    Router::new()
        .route("/", get(|| async { Html(FORM) }))
        .route("/flaky", get(|| async { Html("<p id=p>wait</p><script>setTimeout(() => p.textContent = 'third look', 700)</script>") }))
        .route("/slow", get(|| async { Html("<p>slow</p><button id=b>Go</button>") }))
        .route("/login", get(|| async { Html(LOGIN) }))
        .route("/widgets", get(|| async { Html(WIDGETS) }))
        .route("/inner", get(|| async { Html("<button onclick=\"parent.done.textContent += ' framed'\">In the frame</button>") }))
        .route("/reach", get(reach))
        .route("/hit", get(hit))
        .with_state(seen)
}

/// Tries to reach another address from within the page, in several ways.
async fn reach(Query(other): Query<Other>) -> Html<String> {
    let to = other.to.unwrap_or_default();
    Html(format!(
        "<p id=out>trying</p><img src='http://{to}/hit?img'><script>
         const socket = new Promise((done) => {{ const ws = new WebSocket('ws://{to}/hit?ws'); ws.onopen = () => done('reached'); ws.onerror = () => done('no'); }});
         const fetched = fetch('http://{to}/hit?fetch', {{mode: 'no-cors'}}).then((r) => r.type === 'opaque' ? 'answered' : 'reached', () => 'no');
         Promise.all([socket, fetched]).then(([a, b]) => out.textContent = 'socket ' + a + ', fetch ' + b + ', peers ' + typeof RTCPeerConnection);
         </script>"
    ))
}

async fn hit(State(seen): State<Seen>, request: axum::extract::Request) -> &'static str {
    seen.lock().expect("not poisoned").push(request.uri().to_string());
    "hit"
}

const FORM: &str = r#"<!doctype html><title>Order</title><h1>Order form</h1>
<form onsubmit="event.preventDefault(); thanks.textContent = 'Thank you, ' + n.value; thanks.hidden = false">
<label>Name <input id=name name=n></label>
<select id=colour><option value=r>Red</option><option value=b>Blue</option></select><button id=send>Send</button></form>
<p id=thanks hidden></p><script>const n = document.getElementById('name'), thanks = document.getElementById('thanks')</script>"#;

/// Shows the password in every way a page may: its field, the text, the address, a title.
const LOGIN: &str = r#"<!doctype html><title>Log in</title><input id=user><input id=pass type=text>
<button id=go onclick="const p = pass.value; history.replaceState(0, '', '?p=' + encodeURIComponent(p)); out.textContent = 'Welcome, your password is ' + p;
  document.title = p; pass.placeholder = p;">Log in</button><p id=out></p><p id=b64></p>"#;

const WIDGETS: &str = r##"<!doctype html><title>Widgets</title><div id=host></div><iframe src="/inner" id=frame></iframe><p id=done></p>
<label>Say it <textarea id=say></textarea></label><button aria-label="Press me" onclick="done.textContent += ' pressed'">x</button>
<select id=pick onchange="done.textContent += ' picked ' + value"><option value=1>One</option><option value=2>Two</option></select>
<input id=range type=range min=0 max=10 onchange="done.textContent += ' ranged ' + value"><a href="#end" id=link>To the end</a>
<div ondblclick="done.textContent += ' doubled'" id=twice>Twice</div><div onmouseover="done.textContent += ' hovered'" id=over>Over</div>
<input id=keys onkeydown="done.textContent += ' key ' + event.key"><canvas id=map width=100 height=50 onclick="done.textContent += ' at ' + event.offsetX"></canvas>
<div style="height: 3000px"></div><p id=bottom>Bottom</p>
<script>const done = document.getElementById('done'); const root = host.attachShadow({mode: 'open'});
root.innerHTML = '<button>In the shadow</button>'; root.querySelector('button').onclick = () => done.textContent += ' shadowed';</script>"##;
