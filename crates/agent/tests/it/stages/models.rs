//! Stages that call a model or a service: requests as the API documents them, checked responses, classified errors.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use gleaner::{Failure, Item};
use gleaner_agent::pipeline::{Pipelines, Services, fetch};
use serde_json::{Value, json};

use super::openai::{Endpoint, chat, error, ok};
use crate::pipelines::world::Folder;

/// A pipeline of one stage for notes, and a directory for the files it reads.
struct Bench {
    pipelines: Pipelines,
    folder: Folder,
}

impl Bench {
    fn new(text: &str) -> Result<Self> {
        let folder = Folder::new()?;
        folder.write("key", "sk-secret\n")?;
        let pipelines = Pipelines::load(Some(&folder.write("p.toml", text)?))?;
        anyhow::ensure!(pipelines.missing().is_empty(), "{:?}", pipelines.missing());
        Ok(Self { pipelines, folder })
    }

    async fn run(&self, payload: Value) -> Result<Value, Failure> {
        let fetch = fetch::Direct::new(None, [format!("file://{}", self.folder.path().display())]).expect("a client");
        let services = Services { fetch: Arc::new(fetch), models: self.pipelines.models().clone(), home: self.folder.path().to_owned() };
        let hour = Duration::from_secs(3600);
        let item = Item {
            key: "7".into(),
            lease: 1,
            kind: Some("call".into()),
            owner: None,
            attempts: 0,
            payload,
            partial: None,
            lease_for: hour,
            deadline_in: hour,
        };
        self.pipelines.try_out("activities", &item, &services).await
    }

    async fn text(&self, text: &str) -> Result<Value, Failure> {
        self.run(json!({"source_type": "text", "content": text})).await
    }
}

fn model(kind: &str, base: &str) -> String {
    format!("[models.it]\nkind = \"{kind}\"\nurl = \"{base}\"\nmodel = \"test-model\"\nkey_file = \"key\"\ntimeout = \"500ms\"\n")
}

fn pipeline(model: &str, stage: &str, list: &str) -> String {
    format!("language = \"German\"\n{model}\n{stage}\n[queues.activities.kinds]\ncall = [{list}]\n")
}

#[tokio::test]
async fn a_chat_sends_the_prompt_with_the_item_and_stores_answer_and_tokens() -> Result<()> {
    let endpoint = Endpoint::start([chat(r#"{"summary": "Ann will zwei Pumpen."}"#)]).await?;
    let bench = Bench::new(&pipeline(
        &model("chat", &endpoint.base),
        "[stages.summary]\nchat = \"it\"\ntemperature = 0.2\nmax_tokens = 300",
        "\"summary\"",
    ))?;
    let result = bench.text("Ann wants two pumps.").await.map_err(|f| anyhow::anyhow!("{f:?}"))?;
    assert_eq!(result["summary"], "Ann will zwei Pumpen.");
    let books = &result["gleaner"];
    assert_eq!(books["tokens"], json!({"input": 19, "output": 10, "total": 29}));
    assert_eq!((&books["models_used"], &books["stages"]["summary"]["by"]), (&json!(true), &json!("model it (test-model-2026)")));
    assert!(books["note"].is_null(), "a model was used for everything");
    let asked = endpoint.asked();
    assert_eq!((asked.len(), asked[0].method.as_str(), asked[0].path.as_str()), (1, "POST", "/v1/chat/completions"));
    assert_eq!(asked[0].header("authorization"), "Bearer sk-secret");
    let body = asked[0].json();
    assert_eq!((&body["model"], &body["temperature"], &body["max_tokens"]), (&json!("test-model"), &json!(0.2), &json!(300)));
    assert_eq!(body["messages"][0]["role"], "system");
    assert!(body["messages"][0]["content"].as_str().is_some_and(|text| text.contains("you write in German")), "{body}");
    assert!(
        body["messages"][1]["content"].as_str().is_some_and(|text| text.contains("<message>\nAnn wants two pumps.\n</message>")),
        "{body}"
    );
    assert_eq!(body["response_format"]["json_schema"]["schema"]["required"], json!(["summary"]));
    assert_eq!(
        (&body["response_format"]["type"], &body["response_format"]["json_schema"]["strict"]),
        (&json!("json_schema"), &json!(true))
    );
    Ok(())
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_mended_once() -> Result<()> {
    let endpoint = Endpoint::start([chat(r#"{"facts": "none"}"#), chat("```json\n{\"facts\": [\"a\"]}\n```")]).await?;
    let bench = Bench::new(&pipeline(&model("chat", &endpoint.base), "[stages.facts]\nchat = \"it\"", "\"facts\""))?;
    let result = bench.text("a").await.map_err(|f| anyhow::anyhow!("{f:?}"))?;
    assert_eq!((&result["facts"], &result["gleaner"]["tokens"]["total"]), (&json!(["a"]), &json!(58)), "both calls are counted");
    let asked = endpoint.asked();
    let messages = asked[1].json()["messages"].clone();
    assert_eq!((&messages[2]["role"], &messages[2]["content"]), (&json!("assistant"), &json!(r#"{"facts": "none"}"#)));
    assert!(messages[3]["content"].as_str().is_some_and(|text| text.contains("/facts: \"none\" is not of type \"array\"")), "{messages}");
    Ok(())
}

#[tokio::test]
async fn an_answer_that_never_fits_is_a_failure_after_two_calls() -> Result<()> {
    let endpoint = Endpoint::start([chat("Sure!"), chat("I cannot."), chat(r#"{"facts": []}"#)]).await?;
    let bench = Bench::new(&pipeline(&model("chat", &endpoint.base), "[stages.facts]\nchat = \"it\"", "\"facts\""))?;
    let failure = bench.text("a").await.expect_err("it does not fit");
    assert_eq!((failure.category.as_str(), failure.retryable, endpoint.asked().len()), ("LLMError", true, 2), "{failure:?}");
    Ok(())
}

#[tokio::test]
async fn errors_say_whether_to_try_again_and_when() -> Result<()> {
    for (answer, retryable, retry_in, told) in [
        (
            error(429, "Rate limit reached for requests", "rate_limit_exceeded").with("retry-after", "7"),
            true,
            Some(7),
            "429 Too Many Requests: Rate limit reached",
        ),
        (error(500, "The server had an error", "server_error"), true, None, "500 Internal Server Error"),
        (error(503, "overloaded", "overloaded").with("retry-after", "2"), true, Some(2), "503"),
        (error(401, "Incorrect API key provided", "invalid_api_key"), false, None, "401 Unauthorized: Incorrect API key provided"),
        (
            error(400, "This model's maximum context length is 8192 tokens", "context_length_exceeded"),
            false,
            None,
            "maximum context length",
        ),
        (error(404, "The model does not exist", "model_not_found"), false, None, "404 Not Found"),
        (chat("late").after(Duration::from_secs(2)), true, None, "model it: "),
        (ok(json!({"object": "chat.completion", "choices": []})), true, None, "no choices[0].message.content"),
    ] {
        let endpoint = Endpoint::start([answer]).await?;
        let bench = Bench::new(&pipeline(
            &model("chat", &endpoint.base),
            "[stages.answer]\nchat = \"it\"\nprompt_text = \"{{ text }}\"",
            "\"answer\"",
        ))?;
        let failure = bench.text("a").await.expect_err("it failed");
        assert_eq!(
            (failure.category.as_str(), failure.retryable, failure.retry_in.map(|wait| wait.as_secs())),
            ("LLMError", retryable, retry_in),
            "{failure:?}"
        );
        assert!(failure.message.contains(told) && !failure.message.contains("sk-secret"), "{failure:?}");
    }
    let bench = Bench::new(&pipeline(
        &model("chat", "http://127.0.0.1:9/v1"),
        "[stages.answer]\nchat = \"it\"\nprompt_text = \"x\"",
        "\"answer\"",
    ))?;
    let failure = bench.text("a").await.expect_err("nobody is there");
    assert_eq!((failure.category.as_str(), failure.retryable), ("LLMError", true), "{failure:?}");
    Ok(())
}

#[tokio::test]
async fn a_template_that_does_not_fit_the_item_is_invalid_for_good() -> Result<()> {
    let endpoint = Endpoint::start([chat("x")]).await?;
    let bench = Bench::new(&pipeline(
        &model("chat", &endpoint.base),
        "[stages.answer]\nchat = \"it\"\nprompt_text = \"{{ item.payload.a.b }}\"",
        "\"answer\"",
    ))?;
    let failure = bench.text("a").await.expect_err("there is no a");
    assert_eq!((failure.category.as_str(), failure.retryable, endpoint.asked().len()), ("ValidationError", false, 0), "{failure:?}");
    Ok(())
}

/// Half a second of a tone, at a sample rate that no transcriber uses.
fn tone(path: &Path) -> Result<()> {
    let data: Vec<u8> = (0..22_050 / 2).flat_map(|n| (((f64::from(n) / 8.0).sin() * 9000.0) as i16).to_le_bytes()).collect();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    for number in [22_050_u32, 44_100] {
        file.extend(number.to_le_bytes());
    }
    file.extend(b"\x02\0\x10\0data");
    file.extend(u32::try_from(data.len())?.to_le_bytes());
    file.extend(data);
    let length = u32::try_from(file.len() - 8)?.to_le_bytes();
    file[4..8].copy_from_slice(&length);
    Ok(std::fs::write(path, file)?)
}

#[tokio::test]
async fn a_transcription_sends_sixteen_kilohertz_and_stores_what_was_said() -> Result<()> {
    let answer =
        || ok(json!({"text": " Hello there. ", "usage": {"type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59}}));
    let endpoint = Endpoint::start([answer(), answer()]).await?;
    let stage =
        "[stages.transcript]\ntranscribe = \"it\"\nlanguage = \"en\"\n[stages.plain]\ntranscribe = \"it\"\ndecode = false\nas = \"plain\"";
    let bench = Bench::new(&pipeline(&model("transcription", &endpoint.base), stage, "\"transcript\", \"plain\", \"summary\""))?;
    let file = bench.folder.path().join("call.wav");
    tone(&file)?;
    let payload = json!({"source_type": "url", "content": format!("file://{}", file.display()), "format": "audio/x-wav"});
    let result = bench.run(payload).await.map_err(|f| anyhow::anyhow!("{f:?}"))?;
    assert_eq!((&result["transcript"], &result["summary"]), (&json!("Hello there."), &json!("Hello there.")));
    assert_eq!(result["gleaner"]["tokens"]["total"], 118);
    let asked = endpoint.asked();
    assert_eq!((asked[0].path.as_str(), asked[0].header("authorization")), ("/v1/audio/transcriptions", "Bearer sk-secret"));
    let form = asked[0].form().await?;
    let text = |name: &str| form.iter().find(|field| field.0 == name).map(|field| String::from_utf8_lossy(&field.3).into_owned());
    assert_eq!(
        (text("model").as_deref(), text("response_format").as_deref(), text("language").as_deref()),
        (Some("test-model"), Some("json"), Some("en"))
    );
    let (_, name, kind, sound) = form.iter().find(|field| field.0 == "file").context("a file")?;
    assert_eq!((name.as_deref(), kind.as_deref()), (Some("recording.wav"), Some("audio/wav")));
    assert_eq!((&sound[..4], u32::from_le_bytes(sound[24..28].try_into()?)), (&b"RIFF"[..], 16_000));
    let form = asked[1].form().await?;
    let (_, _, kind, sound) = form.iter().find(|field| field.0 == "file").context("a file")?;
    assert_eq!((kind.as_deref(), sound.as_ref()), (Some("audio/x-wav"), std::fs::read(&file)?.as_slice()), "as it was recorded");
    assert_eq!(std::fs::read_dir(bench.folder.path().join("recordings"))?.count(), 0, "nothing is left lying about");
    Ok(())
}

#[tokio::test]
async fn a_text_becomes_a_vector() -> Result<()> {
    let answer = json!({"object": "list", "model": "test-embed", "data": [{"object": "embedding", "index": 0, "embedding": [0.5, -0.25]}],
        "usage": {"prompt_tokens": 8, "total_tokens": 8}});
    let endpoint = Endpoint::start([ok(answer), error(413, "too long", "x")]).await?;
    let bench = Bench::new(&pipeline(&model("embedding", &endpoint.base), "[stages.embedding]\nembed = \"it\"", "\"embedding\""))?;
    let result = bench.text("hello").await.map_err(|f| anyhow::anyhow!("{f:?}"))?;
    assert_eq!(result["embedding"], json!({"model": "test-embed", "vector": [0.5, -0.25]}));
    assert_eq!(result["gleaner"]["tokens"], json!({"input": 8, "output": 0, "total": 8}));
    let asked = endpoint.asked();
    assert_eq!((asked[0].path.as_str(), &asked[0].json()["input"]), ("/v1/embeddings", &json!("hello")));
    assert!(!bench.text("hello").await.expect_err("too long").retryable);
    Ok(())
}

#[tokio::test]
async fn a_call_sends_what_its_templates_say_and_repeats_itself_recognisably() -> Result<()> {
    let endpoint = Endpoint::start([
        error(503, "busy", "x").with("retry-after", "3"),
        ok(json!({"ticket": 12})),
        error(409, "taken", "x").with("retry-after", "3"),
        error(423, "locked", "x").with("retry-after", "4"),
    ])
    .await?;
    let stage = format!(
        "[stages.ticket]\nhttp = {{ method = \"PUT\", url = \"{}/tickets/{{{{ item.id | urlencode }}}}?q={{{{ text | urlencode }}}}\", headers = {{ x-path = \"{{{{ env('PATH') }}}}\" }}, \
         body = '{{{{ {{\"text\": text, \"kind\": item.kind}} | tojson }}}}', give_up = [409], retry = [423] }}",
        endpoint.base
    );
    let bench = Bench::new(&pipeline("", &stage, "\"ticket\""))?;
    let failure = bench.text("a b&c").await.expect_err("busy");
    assert_eq!(
        (failure.category.as_str(), failure.retryable, failure.retry_in),
        ("StageError", true, Some(Duration::from_secs(3))),
        "{failure:?}"
    );
    let result = bench.text("a b&c").await.map_err(|f| anyhow::anyhow!("{f:?}"))?;
    assert_eq!(result["ticket"], json!(12), "an answer with only the stage's key is what is in it");
    let asked = endpoint.asked();
    assert_eq!((asked[0].method.as_str(), asked[0].path.as_str()), ("PUT", "/v1/tickets/7"));
    assert_eq!(asked[0].json(), json!({"text": "a b&c", "kind": "call"}));
    assert_eq!((asked[0].header("content-type"), asked[0].header("x-path")), ("application/json", std::env::var("PATH")?.as_str()));
    assert!(!asked[0].header("idempotency-key").is_empty());
    assert_eq!(asked[0].header("idempotency-key"), asked[1].header("idempotency-key"));
    let taken = bench.text("a b&c").await.expect_err("taken");
    assert_eq!((taken.retryable, taken.retry_in), (false, None), "the file says so");
    let locked = bench.text("a b&c").await.expect_err("locked");
    assert_eq!((locked.retryable, locked.retry_in), (true, Some(Duration::from_secs(4))), "and so");
    Ok(())
}
