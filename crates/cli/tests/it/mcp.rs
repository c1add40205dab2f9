//! Assistants that start the program themselves, with the client of the official SDK.

use std::process::Stdio;

use nix::sys::signal::Signal;
use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt as _};
use serde_json::{Value, json};

use crate::support::{Gleaner, eventually};

type Assistant = RunningService<RoleClient, ()>;

/// An assistant with `gleaner agent mcp` at the other end of its pipe, and the process id of that.
async fn assistant(gleaner: &Gleaner, args: &[&str]) -> (Assistant, u32) {
    let mut command = tokio::process::Command::from(gleaner.command(&[&["agent", "mcp"], args].concat()));
    command.env("RUST_LOG", "trace").stdin(Stdio::piped());
    let (process, _) = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn().expect("the program runs");
    let pid = process.id().expect("it runs");
    (().serve(process).await.expect("a handshake"), pid)
}

async fn call(assistant: &Assistant, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    assistant.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.expect("an answer")
}

async fn done(assistant: &Assistant, tool: &'static str, arguments: Value) -> Value {
    let result = call(assistant, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{result:?}");
    result.structured_content.expect("fields")
}

fn held(claimed: &Value) -> Value {
    json!({"queue": "jobs", "key": claimed["items"][0]["key"], "lease": claimed["items"][0]["lease"]})
}

/// Logs at their loudest go to standard error; one stray byte on standard output and the handshake fails.
#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_works_over_a_pipe() {
    let gleaner = Gleaner::migrated();
    tokio::task::block_in_place(|| gleaner.ok(&["enqueue", "jobs", "--kind", "mail", r#"{"to": "ada"}"#]));
    let (assistant, _) = assistant(&gleaner, &["-v", "-v"]).await;
    let claimed = done(&assistant, "claim", json!({"queue": "jobs"})).await;
    assert!(claimed["items"][0]["content"]["text"].as_str().is_some_and(|text| text.contains(r#""to": "ada""#)), "{claimed}");
    let mut complete = held(&claimed);
    done(&assistant, "progress", complete.clone()).await;
    complete["result"] = json!({"sent": true});
    assert_eq!(done(&assistant, "complete", complete).await["outcome"], "done");
    let item = tokio::task::block_in_place(|| gleaner.json(&["items", "show", "jobs", "1"]));
    assert_eq!((&item["state"], &item["result"]), (&json!("done"), &json!({"sent": true})));
    let refused = call(&assistant, "cancel", json!({"queue": "jobs", "keys": ["1"], "reason": "because"})).await;
    assert_eq!(refused.structured_content.expect("fields")["error"]["code"], "not_granted");
    assistant.cancel().await.expect("it ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_lease_is_refused_over_a_pipe() {
    let gleaner = Gleaner::migrated();
    tokio::task::block_in_place(|| gleaner.ok(&["enqueue", "jobs", "--kind", "mail"]));
    let (assistant, _) = assistant(&gleaner, &[]).await;
    let claimed = done(&assistant, "claim", json!({"queue": "jobs"})).await;
    tokio::task::block_in_place(|| {
        gleaner.sql("begin; set local role gleaner_engine; update gleaner.jobs set due_at = due_at - interval '6 minutes'; commit");
        gleaner.ok(&["work", "jobs", "--once", "--exec", "echo '{\"by\": \"the other\"}'"]);
    });
    let mut stale = held(&claimed);
    stale["result"] = json!({"by": "the assistant"});
    let refused = call(&assistant, "complete", stale).await;
    assert_eq!((refused.is_error, &refused.structured_content.expect("fields")["error"]["code"]), (Some(true), &json!("lost")));
    assert_eq!(tokio::task::block_in_place(|| gleaner.json(&["items", "show", "jobs", "1"]))["result"], json!({"by": "the other"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_assistant_held_is_given_back_however_it_goes() {
    let gleaner = Gleaner::migrated();
    for polite in [true, false] {
        tokio::task::block_in_place(|| gleaner.ok(&["enqueue", "jobs", "--kind", "mail"]));
        let (assistant, pid) = assistant(&gleaner, &["--grant", "cancel"]).await;
        assert!(assistant.list_all_tools().await.expect("tools").iter().any(|tool| tool.name == "cancel"));
        done(&assistant, "claim", json!({"queue": "jobs", "limit": 10})).await;
        if polite {
            assistant.cancel().await.expect("it ends");
        } else {
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid.cast_signed()), Signal::SIGTERM).expect("it runs");
        }
        tokio::task::block_in_place(|| {
            eventually("everything to be ready again", || {
                gleaner.sql("select bool_and(status = 'ready' and attempts = 0 and lost = 0) from gleaner.jobs") == "t"
            });
        });
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
fn mistakes_are_told_before_anything_is_served() {
    let gleaner = Gleaner::migrated();
    let unknown = gleaner.run(&["agent", "mcp", "--queues", "job"]);
    assert!(unknown.code == 1 && unknown.err.contains("there is no queue \"job\"") && unknown.out.is_empty(), "{unknown:?}");
    assert_eq!(gleaner.run(&["agent", "mcp", "--grant", "everything"]).code, 2);
    let open = gleaner.run(&["agent", "mcp", "--http", "0.0.0.0:0"]);
    assert!(open.code == 1 && open.err.contains("--allow-host"), "{open:?}");
}
