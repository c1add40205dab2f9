use anyhow::Result;
use serde_json::json;

use super::stage::{TOKEN, stage};

#[tokio::test]
async fn strangers_and_pages_are_kept_out() -> Result<()> {
    let stage = stage().await?;
    let http = reqwest::Client::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let knock = async |path: &str, headers: &[(&str, &str)]| -> Result<u16> {
        let mut request = http.post(format!("{}{path}", stage.base)).json(&hello).header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Ok(request.send().await?.status().as_u16())
    };
    let bearer = format!("Bearer {TOKEN}");
    let ours = ("authorization", bearer.as_str());
    assert_eq!(knock("/mcp", &[ours]).await?, 200);
    assert_eq!(knock("/mcp", &[ours, ("host", "localhost:7433")]).await?, 200);
    for path in ["/mcp", "/a2a"] {
        assert_eq!(knock(path, &[]).await?, 401, "{path} without a token");
        assert_eq!(knock(path, &[("authorization", "Bearer a token of this tesu")]).await?, 401, "{path} with a wrong token");
        assert_eq!(knock(path, &[("authorization", "Bearer ")]).await?, 401, "{path} with an empty token");
        assert_eq!(knock(path, &[ours, ("host", "rebound.example.com")]).await?, 403, "{path} under another name");
        assert_eq!(knock(path, &[ours, ("host", "localhost.example.com:80")]).await?, 403, "{path} under a similar name");
        assert_eq!(knock(path, &[ours, ("origin", "https://evil.example.com")]).await?, 403, "{path} from a page");
        assert_eq!(knock(path, &[ours, ("origin", "null")]).await?, 403, "{path} from a page in a sandbox");
    }
    Ok(())
}
