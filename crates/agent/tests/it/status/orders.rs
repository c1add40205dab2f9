//! Which callers may send commands: pause, resume, concurrency.

use anyhow::{Context as _, Result};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::agent::world::{World, client};

/// Every command with its body.
const ORDERS: [(&str, &str); 3] = [("pause", ""), ("resume", ""), ("concurrency", r#"{"concurrency": 9}"#)];

#[tokio::test(flavor = "multi_thread")]
async fn orders_need_the_token_or_our_own_page() -> Result<()> {
    let world = World::new().await?;
    let (agent, _arrivals) = world.agent(&[("concurrency", "3")]).await?;
    let url = agent.url().context("a page")?.to_owned();
    let at = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let port = at.rsplit(':').next().context("a port")?.to_owned();
    let note: Value = serde_json::from_slice(&std::fs::read(world.home.join("agents/agent.json"))?)?;
    let token = note["token"].as_str().context("a token")?.to_owned();
    let order = async |method: Method, order: &str, body: &str, headers: &[(&str, &str)]| -> Result<StatusCode> {
        let request = client().request(method, format!("{url}{order}")).body(body.to_owned());
        let request = if body.is_empty() { request } else { request.header("content-type", "application/json") };
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Ok(request.send().await?.status())
    };
    let own = format!("http://{at}");
    let (secure, rebound) = (format!("https://{at}"), format!("http://rebound.example:{port}"));
    let rebound_host = rebound.trim_start_matches("http://").to_owned();
    let (half, longer) = (format!("Bearer {}", &token[..token.len() / 2]), format!("Bearer {token}0"));
    let good = format!("Bearer {token}");
    let refused: [(u16, &[(&str, &str)]); 13] = [
        (403, &[]),
        (403, &[("origin", "https://evil.example")]),
        (403, &[("origin", "null")]),
        // Another program on this machine is another origin.
        (403, &[("origin", "http://127.0.0.1:1")]),
        (403, &[("origin", "http://127.0.0.1")]),
        (403, &[("origin", &secure)]),
        (403, &[("origin", &own), ("sec-fetch-site", "cross-site")]),
        (403, &[("origin", &own), ("sec-fetch-site", "same-site")]),
        // Any program can send this header, so it does not prove the origin.
        (403, &[("sec-fetch-site", "same-origin")]),
        (403, &[("authorization", "Bearer ")]),
        (403, &[("authorization", &half)]),
        (403, &[("authorization", &longer)]),
        // A foreign name that resolves to this machine, and a page loaded from it: same origin, but not ours.
        (421, &[("host", &rebound_host), ("origin", &rebound), ("sec-fetch-site", "same-origin")]),
    ];
    for paused in [false, true] {
        if paused {
            agent.control().pause();
        }
        for (status, headers) in refused {
            for (name, body) in ORDERS {
                assert_eq!(order(Method::POST, name, body, headers).await?.as_u16(), status, "{name} {headers:?}");
            }
        }
        assert_eq!((agent.control().is_paused(), agent.control().concurrency()), (paused, 3), "an order was refused and obeyed");
    }
    for headers in [&[("authorization", good.as_str())][..], &[("origin", &own), ("sec-fetch-site", "same-origin")], &[("origin", &own)]] {
        // Following a link sends no command.
        assert_eq!(order(Method::GET, "pause", "", headers).await?.as_u16(), 405);
        agent.control().resume();
        agent.control().set_concurrency(3);
        for (name, body) in ORDERS {
            assert_eq!(order(Method::POST, name, body, headers).await?.as_u16(), 200, "{name} {headers:?}");
            assert_eq!(agent.control().is_paused(), name == "pause", "{name}");
        }
        assert_eq!(agent.control().concurrency(), 9);
    }
    let too_many = json!({"concurrency": 1001}).to_string();
    assert_eq!(order(Method::POST, "concurrency", &too_many, &[("authorization", &good)]).await?.as_u16(), 400);
    assert_eq!(agent.control().concurrency(), 9);
    Ok(())
}
