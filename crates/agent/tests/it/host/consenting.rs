//! From an app's message to running work, and back.

use anyhow::Result;
use gleaner_agent::host::{Host, State};
use serde_json::json;

use super::{message, stage, until};

#[tokio::test]
async fn a_yes_holds_for_what_was_shown_and_for_nothing_else() -> Result<()> {
    let stage = stage().await?;
    stage.host.add("crm", "http://localhost:5173", None)?;
    let ask = async |url: &str| stage.page("ask", json!({"name": "crm", "message": message(url)})).await.map(|(_, asked)| asked);
    let first = ask("https://first.supabase.co").await?;
    assert_eq!(first["decision"], "ask");
    assert_eq!(ask("https://first.supabase.co").await?["proposal"], first["proposal"], "the same question");
    // The app asks for something else while the user reads the first request.
    let second = ask("https://second.supabase.co").await?;
    assert_eq!(stage.page("agree", json!({"name": "crm", "proposal": first["proposal"]})).await?.0, 409);
    assert!(stage.noted.said().is_empty(), "nothing was agreed to");
    assert_eq!(stage.page("agree", json!({"name": "crm", "proposal": second["proposal"]})).await?.0, 200);
    assert_eq!(stage.noted.said(), ["begin crm", "serve crm https://second.supabase.co"]);
    assert_eq!(stage.page("agree", json!({"name": "crm", "proposal": second["proposal"]})).await?.0, 409, "a yes is given once");
    assert_eq!(ask("https://second.supabase.co").await?["decision"], "granted");
    Ok(())
}

#[tokio::test]
async fn an_app_that_is_revoked_while_it_starts_is_not_served() -> Result<()> {
    let stage = stage().await?;
    stage.noted.starts.forget_permits(100);
    stage.host.add("crm", "http://localhost:5173", None)?;
    let (_, asked) = stage.page("ask", json!({"name": "crm", "message": message("https://a.supabase.co")})).await?;
    let agreeing = tokio::spawn(stage.asks("agree", &json!({"name": "crm", "proposal": asked["proposal"]})).send());
    until("it begins", || stage.noted.said() == ["begin crm"]).await?;
    assert_eq!(stage.host.state("crm"), State::Starting);
    assert_eq!(stage.page("revoke", json!({"name": "crm"})).await?.0, 200);
    stage.noted.starts.add_permits(1);
    agreeing.await??;
    assert_eq!(stage.noted.said().last().map(String::as_str), Some("stop crm"), "{:?}", stage.noted.said());
    assert_eq!(stage.host.state("crm"), State::New);
    Ok(())
}

#[tokio::test]
async fn what_was_agreed_to_outlives_the_agent_and_what_was_stopped_stays_stopped() -> Result<()> {
    let stage = stage().await?;
    let token = stage.agreed("one", "http://localhost:1111").await?;
    stage.agreed("two", "http://localhost:2222").await?;
    stage.page("stop", json!({"name": "two"})).await?;
    let file = std::fs::read_to_string(stage.home.join("host.json"))?;
    assert!(!file.contains(&token), "tokens are kept as hashes");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(stage.home.join("host.json"))?.permissions().mode() & 0o777, 0o600);
    }
    let before = stage.noted.said().len();
    let again = Host::open(&stage.home, stage.noted.clone(), Vec::new())?;
    again.resume().await;
    assert_eq!(stage.noted.said()[before..], ["begin one", "serve one https://project.supabase.co"]);
    assert_eq!((again.state("one"), again.state("two")), (State::Serving, State::Stopped));

    std::fs::write(stage.home.join("host.json"), "{")?;
    let error = Host::open(&stage.home, stage.noted.clone(), Vec::new()).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("host.json cannot be read") && error.contains("remove it"), "{error}");
    Ok(())
}

#[tokio::test]
async fn a_frame_that_is_loaded_again_gets_a_token_and_only_the_newest_few_are_good() -> Result<()> {
    let stage = stage().await?;
    let mut tokens = vec![stage.agreed("crm", "http://localhost:5173").await?];
    for _ in 0..4 {
        let (_, asked) = stage.page("ask", json!({"name": "crm", "message": message("https://project.supabase.co")})).await?;
        tokens.push(asked["token"].as_str().unwrap_or_default().to_owned());
    }
    let mut good = Vec::new();
    for token in &tokens {
        let answer = stage.http.get(format!("{}/v1/models", stage.base)).bearer_auth(token).send().await?;
        good.push(answer.status() == 200);
    }
    assert_eq!(good, [false, true, true, true, true]);
    Ok(())
}
