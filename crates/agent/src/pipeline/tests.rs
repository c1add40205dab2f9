use std::path::Path;

use serde_json::{Value, json};

use super::fetch::Nothing;
use super::*;

fn parse(text: &str) -> Result<Pipelines, Error> {
    Pipelines::parse(text, Path::new("/nowhere"), "pipelines.toml")
}

fn mistakes(text: &str) -> String {
    parse(text).expect_err("it has mistakes").to_string()
}

fn item(queue_kind: Option<&str>, payload: Value, partial: Option<Value>) -> Item {
    let hour = Duration::from_secs(3600);
    Item {
        key: "k".into(),
        lease: 1,
        kind: queue_kind.map(str::to_owned),
        owner: None,
        attempts: 0,
        payload,
        partial,
        lease_for: hour,
        deadline_in: hour,
    }
}

fn services(pipelines: &Pipelines) -> Services {
    Services { fetch: Arc::new(Nothing), models: pipelines.models().clone(), home: std::env::temp_dir() }
}

async fn run(pipelines: &Pipelines, item: &Item) -> Result<Value, Failure> {
    pipelines.try_out("activities", item, &services(pipelines)).await
}

#[test]
fn without_a_file_text_is_read_and_calls_are_left_to_those_who_listen() {
    let pipelines = Pipelines::load(None).expect("the built-in pipelines");
    assert_eq!(pipelines.queues(), ["activities", "dumps"]);
    let kinds = pipelines.kinds("activities").expect("named kinds");
    assert!(kinds.contains(&"sms".to_owned()) && kinds.contains(&"email".to_owned()) && !kinds.contains(&"call".to_owned()), "{kinds:?}");
    assert_eq!(pipelines.kinds("dumps"), None, "a queue without kinds");
    assert_eq!(pipelines.kinds("jobs"), Some(vec![]), "nothing is known of it");
    assert_eq!(pipelines.missing(), []);
    assert!(pipelines.capabilities().contains(&"activities/sms".to_owned()));
}

#[test]
fn a_model_of_the_environment_makes_the_insights_of_dumps() {
    let variable = |name: &str| (name == "GLEANER_MODEL_URL" || name == "GLEANER_MODEL").then(|| "llama \"3\"".to_owned());
    let text = super::built_in(variable);
    assert!(text.contains("model   = 'llama \"3\"'") || text.contains(r#"model   = "llama \"3\"""#), "{text}");
    let stages = |text: &str| {
        let pipelines = Pipelines::parse(text, std::path::Path::new("."), "built in").expect("the built-in pipelines");
        let (_, kind) = pipelines.plan.queues.get("dumps").and_then(|queue| queue.kinds.iter().next()).expect("dumps");
        kind.stages.iter().map(|stage| (stage.name.clone(), stage.key.clone(), stage.asks_model())).collect::<Vec<_>>()
    };
    let (with, without) = (stages(&text), stages(&super::built_in(|_| None)));
    let names = |stages: &[(String, String, bool)]| stages.iter().map(|(name, key, _)| (name.clone(), key.clone())).collect::<Vec<_>>();
    assert_eq!(names(&with), names(&without), "the same names and results either way");
    assert_eq!(with.iter().filter(|(.., model)| *model).count(), 4);
    assert!(!without.iter().any(|(.., model)| *model));
}

#[test]
fn all_mistakes_are_reported_at_once_with_their_lines() {
    let message = mistakes(
        r#"
[models.big]
kind = "chatty"
model = "m"

[stages.summary]
chat = "bog"

[stages.tags]
command = "true"
http = { url = "https://example.com" }

[stages.hook]
http = { url = "https://{{ item.payload.host }}/x" }
temperature = 1.0

[stages.wait]
command = "true"
timeout = "soon"

[queues.activities.kinds]
sms = ["clean", "sumary", "clean"]
"#,
    );
    for line in [
        "line 3: model big is of kind \"chatty\"; write \"chat\", \"transcription\" or \"embedding\"",
        "line 6: stage summary asks the model \"bog\", which is not defined; write [models.bog]",
        "line 9: stage tags is command and http at once",
        "line 13: stage hook has temperature, which is for chat",
        "line 13: stage hook calls \"https://{{ item.payload.host }}/x\"; the address begins with",
        "line 17: \"soon\" is no time; write it as \"90 seconds\"",
        "line 22: activities/sms has the stage \"sumary\", which is neither built in (clean, language,",
        "line 22: activities/sms has the stage clean twice",
    ] {
        assert!(message.contains(line), "{line}\n--- is not in ---\n{message}");
    }
    assert!(message.starts_with("8 mistakes in pipelines.toml:"), "{message}");
}

#[test]
fn what_is_no_pipeline_file_says_where() {
    assert!(mistakes("[stages.a]\ncomand = \"x\"").contains("line 2"), "{}", mistakes("[stages.a]\ncomand = \"x\""));
    assert!(mistakes("").contains("there is no queue; write [queues.activities.kinds]"));
    let message = mistakes(
        "[models.m]\nkind = \"chat\"\nmodel = \"x\"\nurl = \"http://127.0.0.1:1/v1\"\n[stages.s]\nchat = \"m\"\nprompt = \"none.md\"\n",
    );
    assert!(message.contains("line 5: stage s: read /nowhere/none.md: No such file"), "{message}");
    let message = mistakes("[models.m]\nkind = \"chat\"\nmodel = \"x\"\n[stages.s]\nchat = \"m\"\nprompt_text = \"a\\n{{ text\"\n");
    assert!(message.contains("line 4: stage s: prompt_text, line 2: "), "{message}");
    let message = mistakes("[models.m]\nkind = \"chat\"\nmodel = \"x\"\n[stages.s]\nchat = \"m\"\nprompt_text = \"{{ txt }}\"\n");
    assert!(message.contains("prompt_text: there is no \"txt\"; a template can speak of item, record, text, results"), "{message}");
}

#[test]
fn a_kind_that_lacks_its_command_model_or_key_is_not_claimed_and_the_reason_is_reported() {
    let pipelines = parse(
        r#"
[models.ears]
kind = "transcription"
url_env = "GLEANER_TEST_NO_SUCH_URL"
model = "whisper-1"
[models.mind]
kind = "chat"
url = "http://127.0.0.1:9/v1"
model = "m"
key_env = "GLEANER_TEST_NO_SUCH_KEY"
[stages.transcript]
transcribe = "ears"
[stages.summary]
chat = "mind"
[stages.tags]
command = ["gleaner-no-such-command"]
[queues.activities.kinds]
call = ["transcript"]
email = ["clean", "summary"]
note = ["tags"]
sms = ["clean"]
"#,
    )
    .expect("no mistakes");
    assert_eq!(pipelines.kinds("activities"), Some(vec!["sms".to_owned()]));
    let message: Vec<String> = pipelines.missing().iter().map(ToString::to_string).collect();
    assert_eq!(
        message,
        [
            "activities/call is not claimed: stage transcript: model ears has no URL: set GLEANER_TEST_NO_SUCH_URL, for example http://127.0.0.1:11434/v1",
            "activities/email is not claimed: stage summary: model mind has no key: set GLEANER_TEST_NO_SUCH_KEY",
            "activities/note is not claimed: stage tags: there is no command \"gleaner-no-such-command\" on the PATH",
        ]
    );
    assert_eq!(pipelines.capabilities(), ["activities/sms"]);
}

#[test]
fn a_kind_that_cannot_run_falls_to_the_pipeline_of_all_others() {
    let pipelines = parse(
        "[stages.x]\ncommand = [\"gleaner-no-such-command\"]\n[queues.q.kinds]\na = [\"x\"]\n\"*\" = {stages = [\"clean\"], time_limit = \"3 minutes\"}\n",
    )
    .expect("no mistakes");
    assert_eq!((pipelines.kinds("q"), pipelines.missing().len()), (None, 1));
    assert_eq!(pipelines.stages("q", "a"), Some(vec!["clean"]));
    assert_eq!(pipelines.time_limit("q", "a"), Some(Duration::from_secs(180)));
}

#[tokio::test]
async fn a_message_is_read_and_the_result_says_that_no_model_was_used() {
    let pipelines = Pipelines::load(None).expect("the built-in pipelines");
    let text = "Hello, please send the offer for 2 pumps to ann@example.com by Friday. The budget is $5,000.";
    let result = run(&pipelines, &item(Some("sms"), json!({"source_type": "text", "content": text}), None)).await.expect("a result");
    assert_eq!(result["transcript"], text);
    assert!(result["summary"].as_str().is_some_and(|summary| summary.contains("offer")), "{result}");
    assert_eq!(result["entities"]["emails"], json!(["ann@example.com"]));
    assert!(result["facts"].as_array().is_some_and(|facts| facts.contains(&json!("Amount: 5000 USD"))), "{result}");
    assert_eq!(result["language"]["code"], "en");
    assert_eq!((&result["gleaner"]["models_used"], &result["gleaner"]["version"]), (&json!(false), &json!(1)));
    assert!(result["gleaner"]["note"].as_str().is_some_and(|note| note.starts_with("No model was used for language, summary, ")));
}

#[tokio::test]
async fn an_item_without_content_is_invalid_for_good_and_a_picture_is_not() {
    let pipelines = Pipelines::load(None).expect("the built-in pipelines");
    for payload in [json!(null), json!({}), json!({"source_type": "text"}), json!({"source_type": "url"})] {
        let failure = run(&pipelines, &item(Some("sms"), payload.clone(), None)).await.expect_err("it has no content");
        assert_eq!((failure.category.as_str(), failure.retryable), ("ValidationError", false), "{payload}");
    }
    let picture = json!({"source_type": "url", "content": "https://a/1", "format": "image/jpeg"});
    let result = run(&pipelines, &item(Some("sms"), picture, None)).await.expect("nothing is wrong with it");
    assert_eq!(result["gleaner"]["stages"]["summary"]["skipped"], "the item has no text");
    assert_eq!(result.as_object().map(|all| all.len()), Some(1), "{result}");
}

#[tokio::test]
async fn a_finished_stage_is_not_repeated_unless_its_settings_or_its_input_changed() {
    let folder = std::env::temp_dir().join(format!("gleaner-pipeline-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&folder).expect("a folder");
    let text = |more: &str| {
        format!("[stages.count]\ncommand = \"echo x >> ran; wc -l < ran{more}\"\n[queues.activities.kinds]\nsms = [\"count\", \"clean\"]\n")
    };
    let load = |more: &str| Pipelines::parse(&text(more), &folder, "p").expect("no mistakes");
    let message = |content: &str, partial: Option<Value>| item(Some("sms"), json!({"source_type": "text", "content": content}), partial);
    let first = run(&load(""), &message("hi", None)).await.expect("a result");
    assert_eq!(first["count"], 1);
    let again = run(&load(""), &message("hi", Some(first.clone()))).await.expect("a result");
    assert_eq!(again["count"], 1, "resumed behind it");
    assert_eq!(again["gleaner"]["stages"]["count"], first["gleaner"]["stages"]["count"]);
    let other_text = run(&load(""), &message("hello", Some(first.clone()))).await.expect("a result");
    assert_eq!(other_text["count"], 2, "another input");
    let other_command = run(&load(" #"), &message("hi", Some(first.clone()))).await.expect("a result");
    assert_eq!(other_command["count"], 3, "another configuration");
    let mut damaged = first;
    damaged.as_object_mut().expect("an object").remove("count");
    assert_eq!(run(&load(""), &message("hi", Some(damaged))).await.expect("a result")["count"], 4, "its result is gone");
    let _ = std::fs::remove_dir_all(folder);
}

/// Every pipeline file in the manual, and every ready-made one, can be loaded as printed.
#[test]
fn the_examples_of_the_manual_have_no_mistakes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut tried = 0;
    for page in ["docs/how-to/pipelines.md", "docs/reference/pipelines.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect(page);
        for example in text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            // The excerpt of a file is shown without its queues.
            let whole = if example.contains("[queues.") {
                example.to_owned()
            } else {
                format!("{example}\n[queues.q.kinds]\n\"*\" = [\"clean\"]\n")
            };
            let loaded = Pipelines::parse(&whole, &root.join("examples/agent"), page);
            assert!(loaded.is_ok(), "{}\n{example}", loaded.err().map(|error| error.to_string()).unwrap_or_default());
            tried += 1;
        }
    }
    assert!(tried >= 6, "{tried}");
    for file in ["pipelines.toml", "with-models.toml"] {
        let loaded = Pipelines::load(Some(&root.join("examples/agent").join(file)));
        assert!(loaded.is_ok(), "{}", loaded.err().map(|error| error.to_string()).unwrap_or_default());
    }
}

/// Returns when the item was written, and nothing else.
#[derive(Debug)]
struct Written(&'static str);

#[async_trait::async_trait]
impl Fetch for Written {
    async fn medium(&self, medium: &fetch::Medium) -> Result<fetch::Fetched, Failure> {
        Nothing.medium(medium).await
    }

    async fn row(&self, _: &str, _: &str, _: &str) -> Result<Option<Value>, Failure> {
        Ok(Some(json!({"created_at": self.0})))
    }
}

#[tokio::test]
async fn the_result_shown_in_the_manual_is_what_comes_out() {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/pipelines.md")).expect("the page");
    let shown = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let shown: Value = serde_json::from_str(shown).expect("JSON");
    let text = shown["transcript"].as_str().expect("a text");
    assert!(page.contains(&format!("An SMS `{text}`")), "the text is the one the page speaks of");
    let pipelines = Pipelines::load(None).expect("the built-in pipelines");
    let services = Services { fetch: Arc::new(Written("2026-11-16T12:00:00Z")), ..services(&pipelines) };
    let item = item(Some("sms"), json!({"source_type": "text", "content": text}), None);
    let mut result = pipelines.try_out("activities", &item, &services).await.expect("a result");
    let books = result["gleaner"].take();
    result["gleaner"] = json!({"models_used": books["models_used"], "note": books["note"]});
    assert_eq!(result, shown, "{result:#}");
}
