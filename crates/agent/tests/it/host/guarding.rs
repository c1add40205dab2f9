//! Which requests the host page's API answers.

use anyhow::Result;
use serde_json::json;

use super::{answered, message, stage};

const ACTS: [&str; 8] = ["apps", "remove", "ask", "agree", "decline", "start", "stop", "revoke"];

#[tokio::test]
async fn only_the_agents_own_page_gives_orders() -> Result<()> {
    let stage = stage().await?;
    stage.host.add("crm", "http://localhost:5173", None)?;
    let body = json!({"name": "crm"});
    for act in ACTS {
        let good = stage.asks(act, &body).build()?;
        let tampered: [(&str, Option<&str>, u16); 8] = [
            ("x-gleaner-token", None, 403),
            ("x-gleaner-token", Some("guess"), 403),
            ("origin", None, 403),
            ("origin", Some("http://localhost:5173"), 403),
            ("origin", Some("null"), 403),
            ("sec-fetch-site", Some("same-site"), 403),
            ("sec-fetch-site", Some("cross-site"), 403),
            // A foreign name that resolves to this machine.
            ("host", Some("rebound.example:7433"), 421),
        ];
        for (header, value, expected) in tampered {
            let mut request = good.try_clone().expect("a body in memory");
            request.headers_mut().remove(header);
            if let Some(value) = value {
                request.headers_mut().insert(header, value.parse()?);
            }
            let status = stage.http.execute(request).await?.status().as_u16();
            assert_eq!(status, expected, "{act} with {header} {value:?}");
        }
        // A form, which a page from another site could send without a preflight request.
        let mut form = good;
        form.headers_mut().insert("content-type", "text/plain".parse()?);
        assert_eq!(stage.http.execute(form).await?.status().as_u16(), 415, "{act}");
    }
    assert!(stage.noted.said().is_empty());
    let unasked = stage.http.get(format!("{}/host/api/apps", stage.base)).send().await?;
    assert_eq!(unasked.status(), 403, "what is on the page is not for others to read");
    for path in ["", "/page.js", "/page.css"] {
        let rebound = stage.http.get(format!("{}/host{path}", stage.base)).header("host", "rebound.example").send().await?;
        assert_eq!(
            (rebound.status().as_u16(), stage.http.get(format!("{}/host{path}", stage.base)).send().await?.status().as_u16()),
            (421, 200)
        );
    }
    assert_eq!(stage.page("stop", body).await?.0, 200, "our own page is obeyed");
    Ok(())
}

#[tokio::test]
async fn an_app_is_added_once_by_a_url_that_can_be_trusted_and_is_not_our_own() -> Result<()> {
    let stage = stage().await?;
    let add = async |name: &str, url: &str| stage.page("apps", json!({"name": name, "url": url})).await.map(|(status, _)| status);
    assert_eq!(add("crm", "http://localhost:5173/app").await?, 201);
    assert_eq!(add("CRM", "http://localhost:5174").await?, 400, "the name is taken");
    assert_eq!(add("far", "http://crm.example.com").await?, 400);
    assert_eq!(add("ours", &format!("{}/host", stage.base.replace("127.0.0.1", "localhost"))).await?, 400);
    let page = stage.http.get(format!("{}/host", stage.base)).send().await?;
    let policy = page.headers()["content-security-policy"].to_str()?.to_owned();
    assert!(policy.contains("frame-src http://localhost:5173;") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let (status, list) = answered(stage.http.get(format!("{}/host/api/apps", stage.base)).header("x-gleaner-token", &stage.token)).await?;
    assert_eq!((status, &list["apps"][0]["origin"], &list["apps"][0]["state"]), (200, &json!("http://localhost:5173"), &json!("new")));
    assert_eq!(stage.page("ask", json!({"name": "nobody", "message": message("https://a.supabase.co")})).await?.0, 404);
    assert_eq!(stage.page("remove", json!({"name": "crm"})).await?.0, 200);
    assert_eq!(stage.page("remove", json!({"name": "crm"})).await?.0, 404);
    Ok(())
}
