//! Assistants that start the program themselves, with the client of the official SDK.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

use crate::support::Gleaner;

/// An assistant with `gleaner agent mcp` at the other end of its pipe. Its runtime is its own: the world around it waits and blocks.
struct Assistant {
    runtime: tokio::runtime::Runtime,
    service: RunningService<RoleClient, ()>,
    pid: u32,
}

impl Assistant {
    fn start(gleaner: &Gleaner, args: &[&str]) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let mut command = tokio::process::Command::from(gleaner.command(&[&["agent", "mcp"], args].concat()));
        // Logs at their loudest go to standard error; one stray byte on standard output and the handshake fails.
        command.env("RUST_LOG", "trace");
        let (service, pid) = runtime.block_on(async {
            let (process, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().expect("the program runs");
            let pid = process.id().expect("it runs");
            (().serve(process).await.expect("a handshake"), pid)
        });
        Self { runtime, service, pid }
    }

    fn call(&self, tool: &'static str, arguments: Value) -> CallToolResult {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let called = self.service.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments));
        self.runtime.block_on(called).expect("an answer")
    }

    fn done(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_ne!(result.is_error, Some(true), "{result:?}");
        result.structured_content.expect("fields")
    }

    /// The code of a refusal.
    fn refused(&self, tool: &'static str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result.is_error, Some(true), "{result:?}");
        result.structured_content.expect("fields")["error"]["code"].take()
    }

    fn end(self) {
        self.runtime.block_on(self.service.cancel()).expect("it ends");
    }
}

fn held(claimed: &Value) -> Value {
    json!({"queue": "jobs", "key": claimed["items"][0]["key"], "lease": claimed["items"][0]["lease"]})
}

#[test]
fn an_assistant_works_over_a_pipe() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "mail", r#"{"to": "ada"}"#]);
    let assistant = Assistant::start(&gleaner, &["-v", "-v"]);
    let claimed = assistant.done("claim", json!({"queue": "jobs"}));
    assert!(claimed["items"][0]["content"]["text"].as_str().is_some_and(|text| text.contains(r#""to": "ada""#)), "{claimed}");
    let mut complete = held(&claimed);
    assistant.done("progress", complete.clone());
    complete["result"] = json!({"sent": true});
    assert_eq!(assistant.done("complete", complete)["outcome"], "done");
    let item = gleaner.json(&["items", "show", "jobs", "1"]);
    assert_eq!((&item["state"], &item["result"]), (&json!("done"), &json!({"sent": true})));
    assert_eq!(assistant.refused("cancel", json!({"queue": "jobs", "keys": ["1"], "reason": "because"})), "not_granted");
    assistant.end();
}

#[test]
fn a_stale_lease_is_refused_over_a_pipe() {
    let gleaner = Gleaner::migrated();
    gleaner.ok(&["enqueue", "jobs", "--kind", "mail"]);
    let assistant = Assistant::start(&gleaner, &[]);
    let claimed = assistant.done("claim", json!({"queue": "jobs"}));
    gleaner.sql("begin; set local role gleaner_engine; update gleaner.jobs set due_at = due_at - interval '6 minutes'; commit");
    gleaner.ok(&["work", "jobs", "--once", "--exec", "echo '{\"by\": \"the other\"}'"]);
    let mut stale = held(&claimed);
    stale["result"] = json!({"by": "the assistant"});
    assert_eq!(assistant.refused("complete", stale), "lost");
    assert_eq!(gleaner.json(&["items", "show", "jobs", "1"])["result"], json!({"by": "the other"}));
}

#[test]
fn what_an_assistant_held_is_given_back_however_it_goes() {
    let gleaner = Gleaner::migrated();
    for polite in [true, false] {
        gleaner.ok(&["enqueue", "jobs", "--kind", "mail"]);
        let assistant = Assistant::start(&gleaner, &["--grant", "cancel"]);
        let tools = assistant.runtime.block_on(assistant.service.list_all_tools()).expect("tools");
        assert!(tools.iter().any(|tool| tool.name == "cancel"));
        assistant.done("claim", json!({"queue": "jobs", "limit": 10}));
        if polite {
            assistant.end();
        } else {
            kill(Pid::from_raw(assistant.pid.cast_signed()), Signal::SIGTERM).expect("it runs");
        }
        gleaner.until("select bool_and(status = 'ready' and attempts = 0 and lost = 0) from gleaner.jobs", "t");
    }
}

#[test]
fn over_http_it_has_a_token_that_only_its_owner_can_read() {
    use std::os::unix::fs::PermissionsExt as _;
    let gleaner = Gleaner::migrated();
    let mut serving = gleaner.start(&["agent", "mcp", "--http", "127.0.0.1:0", "--json"]);
    let told: Value = serde_json::from_str(&serving.out_until("}")).expect("JSON");
    let file = gleaner.home().join("mcp.token");
    assert_eq!(told["token"], format!("in {}", file.display()));
    assert_eq!(std::fs::metadata(&file).expect("made").permissions().mode() & 0o777, 0o600);
    let token = std::fs::read_to_string(&file).expect("readable");
    assert_eq!(token.trim().len(), 64);
    serving.signal(Signal::SIGTERM);
    assert_eq!(serving.end().code, 0);
    // It is the same the next time, and refused once others can read it.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).expect("ours");
    let refused = gleaner.run(&["agent", "mcp", "--http", "127.0.0.1:0"]);
    assert!(refused.code == 1 && refused.err.contains("chmod 600"), "{refused:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), token);
}

#[test]
fn mistakes_are_reported_before_anything_is_served() {
    let gleaner = Gleaner::migrated();
    let unknown = gleaner.run(&["agent", "mcp", "--queues", "job"]);
    assert!(unknown.code == 1 && unknown.err.contains("there is no queue \"job\"") && unknown.out.is_empty(), "{unknown:?}");
    assert_eq!(gleaner.run(&["agent", "mcp", "--grant", "everything"]).code, 2);
    let open = gleaner.run(&["agent", "mcp", "--http", "0.0.0.0:0"]);
    assert!(open.code == 1 && open.err.contains("--allow-host"), "{open:?}");
}
