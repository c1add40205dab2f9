//! Invitations and forgotten passwords: links that are printed or sent by mail, and can be used once.

use anyhow::Result;
use gleaner_supabase::auth::Mailer;
use gleaner_supabase::auth::{Signup, people};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use crate::auth::support::{ADA, Answer, PASSWORD, World, world, world_with};

fn token_of(link: &str) -> &str {
    link.rsplit_once("token=").map(|(_, token)| token.split(['&', '\r', '\n']).next().unwrap_or_default()).expect("a token")
}

async fn fill_in(world: &World, kind: &str, token: &str, password: &str) -> Answer {
    let body = format!("type={kind}&token={token}&password={}", password.replace(' ', "+"));
    world.bare(Method::POST, "/link").header("content-type", "application/x-www-form-urlencoded").body(body).answer().await
}

#[tokio::test]
async fn an_invitation_may_be_opened_many_times_and_is_used_once() -> Result<()> {
    let world = world().await?;
    let link = people::invite(&world.client, ADA, true, &world.base).await?;
    assert!(link.starts_with(&format!("{}/invite#token=", world.base)), "{link}");
    let token = token_of(&link);
    assert_eq!(
        world.count(&format!("select count(*) from auth.one_time_tokens where token_hash = '{token}'")).await?,
        0,
        "only a hash is kept"
    );
    for _ in 0..3 {
        let page = world.bare(Method::GET, &format!("/link?type=invite&token={token}")).answer().await;
        assert!(page.status == 200 && page.text.contains(ADA) && page.text.contains("<form"), "{page:?}");
        assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
        assert!(page.header("content-security-policy").is_some_and(|policy| policy.contains("default-src 'none'")));
    }
    let weak = fill_in(&world, "invite", token, "short").await;
    assert!(weak.status == 422 && weak.text.contains("<form") && weak.text.contains("at least 8"), "{weak:?}");
    let done = fill_in(&world, "invite", token, PASSWORD).await;
    assert!(done.status == 200 && done.text.contains("Your password is set."), "{done:?}");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    assert_eq!(world.text("select administrator::text from sales").await?.as_deref(), Some("true"));
    let again = fill_in(&world, "invite", token, "somebody else's").await;
    assert!(again.status == 403 && again.text.contains("expired"), "{again:?}");
    assert_eq!(world.sign_in(ADA, PASSWORD).await.status, 200);
    Ok(())
}

#[tokio::test]
async fn a_reset_link_sets_a_new_password_and_ends_what_was_open() -> Result<()> {
    let world = world().await?;
    let session = world.ada_signed_in().await?;
    let link = people::reset(&world.client, " ADA@example.com", &world.base).await?;
    let other = people::reset(&world.client, ADA, &world.base).await?;
    assert_eq!(fill_in(&world, "invite", token_of(&link), "a fresh password").await.status, 403, "it is no invitation");
    assert_eq!(fill_in(&world, "recovery", token_of(&link), "a fresh password").await.status, 200);
    assert_eq!(world.refresh(session.refresh()).await.status, 400);
    assert_eq!(world.sign_in(ADA, "a fresh password").await.status, 200);
    assert_eq!(fill_in(&world, "recovery", token_of(&other), "a thief's one").await.status, 403, "no other link is left to a thief");
    Ok(())
}

#[tokio::test]
async fn a_link_expires_and_a_changed_address_voids_it() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let link = people::reset(&world.client, ADA, &world.base).await?;
    world.run("update auth.one_time_tokens set expires_at = now()").await?;
    assert_eq!(fill_in(&world, "recovery", token_of(&link), "a fresh password").await.status, 403);
    let link = people::reset(&world.client, ADA, &world.base).await?;
    world.run("update auth.users set email = 'lovelace@example.com'").await?;
    assert_eq!(fill_in(&world, "recovery", token_of(&link), "a fresh password").await.status, 403);
    Ok(())
}

#[tokio::test]
async fn a_program_verifies_a_link_and_gets_a_session() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let made = world.post("/admin/generate_link", &json!({"type": "recovery", "email": ADA})).service().answer().await;
    assert_eq!((made.status, &made.body["verification_type"]), (200, &json!("recovery")), "{made:?}");
    let token = made.body["hashed_token"].as_str().unwrap_or_default();
    assert!(made.body["action_link"].as_str().is_some_and(|link| link.contains(token)));
    let session = world.post("/verify", &json!({"type": "recovery", "token_hash": token})).answer().await;
    assert_eq!(session.status, 200, "{session:?}");
    assert_eq!(crate::auth::support::claims(session.access())["amr"][0]["method"], "otp");
    assert_eq!(world.post("/verify", &json!({"type": "recovery", "token_hash": token})).answer().await.refused(), (403, "otp_expired"));
    assert_eq!(world.post("/verify", &json!({"type": "sms", "token": "1"})).answer().await.refused(), (400, "validation_failed"));
    assert_eq!(world.post("/verify", &json!({"type": "recovery"})).answer().await.refused(), (400, "validation_failed"));
    let unknown = world.post("/admin/generate_link", &json!({"type": "recovery", "email": "x@example.com"})).service().answer().await;
    assert_eq!(unknown.refused(), (404, "user_not_found"));
    Ok(())
}

/// Otherwise a link that looks like ours could send the session to an attacker.
#[tokio::test]
async fn a_browser_is_sent_only_where_the_operator_said() -> Result<()> {
    let world = world_with(|settings| settings.redirects = vec!["https://app.example.com/".into(), "http://localhost:5173".into()]).await?;
    world.ada().await?;
    for (asked, sent) in [
        ("", "https://app.example.com/#"),
        ("https://app.example.com/welcome?x=1", "https://app.example.com/welcome?x=1#"),
        ("http://localhost:5173", "http://localhost:5173#"),
        ("https://app.example.com.evil.example/", "https://app.example.com/#"),
        ("https://app.example.com@evil.example/", "https://app.example.com/#"),
        ("https://evil.example/", "https://app.example.com/#"),
        ("//evil.example", "https://app.example.com/#"),
        ("https://app.example.com/%0d%0aset-cookie:x", "https://app.example.com/#"),
    ] {
        let link = people::reset(&world.client, ADA, &world.base).await?;
        let encoded: String = asked.bytes().map(|byte| format!("%{byte:02x}")).collect();
        // One of them is already decoded once.
        let encoded = if asked.contains("%0d") { asked.to_owned() } else { encoded };
        let path = format!("/verify?type=recovery&token={}&redirect_to={encoded}", token_of(&link));
        let answer = world.bare(Method::GET, &path).answer().await;
        let location = answer.header("location").unwrap_or_default();
        assert_eq!(answer.status, 303, "{asked}");
        assert!(
            location.starts_with(sent) && location.contains("access_token=") && location.ends_with("type=recovery"),
            "{asked}: {location}"
        );
    }
    let late = world.bare(Method::GET, "/verify?type=recovery&token=nonsense").answer().await;
    assert!(
        late.header("location").is_some_and(|to| to.starts_with("https://app.example.com/#error=access_denied&error_code=otp_expired"))
    );
    Ok(())
}

#[tokio::test]
async fn with_nowhere_to_go_the_link_leads_to_our_own_page() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let link = people::reset(&world.client, ADA, &world.base).await?;
    let answer = world.bare(Method::GET, &format!("/verify?type=recovery&token={}", token_of(&link))).answer().await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(link.as_str())));
    Ok(())
}

#[tokio::test]
async fn without_a_mail_server_that_is_said_whatever_the_address() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    for email in [ADA, "nobody@example.com"] {
        assert_eq!(world.post("/recover", &json!({"email": email})).answer().await.refused(), (422, "email_provider_disabled"));
    }
    assert_eq!(
        world.post("/invite", &json!({"email": "x@example.com"})).service().answer().await.refused(),
        (422, "email_provider_disabled")
    );
    Ok(())
}

/// A mail server that accepts everything and returns what it got: recipient and text.
async fn post_office() -> Result<(String, mpsc::UnboundedReceiver<(String, String)>)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("smtp://{}", listener.local_addr()?);
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let (read, mut write) = stream.split();
                let mut lines = BufReader::new(read).lines();
                let (mut to, mut text, mut in_data) = (String::new(), String::new(), false);
                write.write_all(b"220 test\r\n").await?;
                while let Some(line) = lines.next_line().await? {
                    let answer: &[u8] = match line.get(..4) {
                        _ if in_data && line == "." => {
                            in_data = false;
                            let _ = sender.send((std::mem::take(&mut to), std::mem::take(&mut text)));
                            b"250 ok\r\n"
                        }
                        _ if in_data => {
                            text += &line;
                            text += "\n";
                            continue;
                        }
                        Some("RCPT") => {
                            to = line;
                            b"250 ok\r\n"
                        }
                        Some("DATA") => {
                            in_data = true;
                            b"354 go on\r\n"
                        }
                        _ => b"250 ok\r\n",
                    };
                    write.write_all(answer).await?;
                }
                std::io::Result::Ok(())
            });
        }
    });
    Ok((url, receiver))
}

/// Long lines are wrapped, with `=3D` for `=`.
fn unquoted(text: &str) -> String {
    text.replace("=\n", "").replace("=3D", "=")
}

#[tokio::test]
async fn with_a_mail_server_links_are_sent_and_strangers_learn_nothing() -> Result<()> {
    let (url, mut mails) = post_office().await?;
    let world = world_with(|settings| {
        settings.mailer = Some(Mailer::new(&url, "Gleaner <gleaner@example.com>").expect("a mailer"));
        settings.signup = Signup::Confirmed;
    })
    .await?;
    world.ada().await?;
    let unknown = world.post("/recover", &json!({"email": "nobody@example.com"})).answer().await;
    let known = world.post("/recover", &json!({"email": ADA})).answer().await;
    assert_eq!((unknown.status, &unknown.body), (200, &json!({})));
    assert_eq!((known.status, &known.body), (200, &json!({})));
    let (to, text) = mails.recv().await.expect("a mail");
    assert!(to.contains(ADA), "{to}");
    let text = unquoted(&text);
    assert_eq!(fill_in(&world, "recovery", token_of(&text), "a fresh password").await.status, 200, "{text}");

    let invited = world.post("/invite", &json!({"email": "bob@example.com", "data": {"first_name": "Bob"}})).service().answer().await;
    assert!(invited.status == 200 && invited.body["invited_at"].is_string(), "{invited:?}");
    let (to, text) = mails.recv().await.expect("a mail");
    assert!(to.contains("bob@example.com"));
    assert_eq!(world.count("select count(*) from sales where first_name = 'Bob'").await?, 0, "he has not come yet");
    assert_eq!(fill_in(&world, "invite", token_of(&unquoted(&text)), PASSWORD).await.status, 200);
    assert_eq!(world.count("select count(*) from sales where first_name = 'Bob'").await?, 1);

    let carol = json!({"email": "carol@example.com", "password": PASSWORD});
    let waiting = world.post("/signup", &carol).answer().await;
    assert!(waiting.status == 200 && waiting.body["id"].is_string() && waiting.body["access_token"].is_null(), "{waiting:?}");
    assert_eq!(world.sign_in("carol@example.com", PASSWORD).await.refused(), (400, "email_not_confirmed"));
    let (_, text) = mails.recv().await.expect("a mail");
    let session = world.post("/verify", &json!({"type": "signup", "token_hash": token_of(&unquoted(&text))})).answer().await;
    assert_eq!(session.status, 200, "{session:?}");
    let again = world.post("/signup", &carol).answer().await;
    assert_eq!((again.status, again.body.get("access_token")), (200, None::<&Value>), "who is here already is nobody's business");
    assert_ne!(again.body["id"], waiting.body["id"]);
    let (to, text) = mails.recv().await.expect("a mail");
    assert!(to.contains("carol") && text.contains("account already") && !text.contains("token="), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_mailbox_is_not_flooded_and_earlier_links_stay_good() -> Result<()> {
    let (url, mut mails) = post_office().await?;
    let world = world_with(|settings| settings.mailer = Some(Mailer::new(&url, "gleaner@example.com").expect("a mailer"))).await?;
    world.ada().await?;
    let mut answers = Vec::new();
    for n in 0..5 {
        let client = format!("198.51.100.{n}");
        answers.push(world.post("/recover", &json!({"email": ADA})).header("x-test-client", &client).answer().await.status);
    }
    assert_eq!(answers, [200, 200, 200, 429, 429]);
    let mut tokens = Vec::new();
    for _ in 0..3 {
        tokens.push(token_of(&unquoted(&mails.recv().await.expect("a mail").1)).to_owned());
    }
    assert_eq!(fill_in(&world, "recovery", &tokens[0], "a fresh password").await.status, 200, "the first works as well as the last");
    Ok(())
}

/// Whether there is such a user is looked up after the response, so that its time says nothing. Here the look waits for a lock.
#[tokio::test]
async fn recover_answers_as_quickly_for_an_address_that_is_known() -> Result<()> {
    let (url, mut mails) = post_office().await?;
    let world = world_with(|settings| settings.mailer = Some(Mailer::new(&url, "gleaner@example.com").expect("a mailer"))).await?;
    world.ada().await?;
    world.client.batch_execute("begin; lock table auth.users").await?;
    for email in [ADA, "nobody@example.com"] {
        let asked = world.post("/recover", &json!({"email": email})).answer();
        let answer = tokio::time::timeout(std::time::Duration::from_secs(5), asked).await?;
        assert_eq!(answer.status, 200, "{email}");
    }
    world.client.batch_execute("commit").await?;
    assert!(mails.recv().await.expect("a mail").0.contains(ADA));
    Ok(())
}

/// The code in a mail: six digits on a line of their own.
fn code_of(text: &str) -> String {
    let is_code = |line: &&str| line.len() == 6 && line.bytes().all(|byte| byte.is_ascii_digit());
    text.lines().map(str::trim).find(is_code).expect("a code").to_owned()
}

#[tokio::test]
async fn a_mailed_code_signs_in_once_and_for_its_address_only() -> Result<()> {
    let (url, mut mails) = post_office().await?;
    let world = world_with(|settings| {
        settings.mailer = Some(Mailer::new(&url, "gleaner@example.com").expect("a mailer"));
        settings.redirects = vec!["http://app.example.com".to_owned()];
    })
    .await?;
    world.ada().await?;
    let unknown = world.post("/otp", &json!({"email": "nobody@example.com"})).answer().await;
    let known = world.post("/otp", &json!({"email": ADA, "create_user": false})).answer().await;
    assert_eq!((unknown.status, unknown.body, known.status, known.body), (200, json!({}), 200, json!({})), "both look alike");
    let (to, text) = mails.recv().await.expect("a mail");
    assert!(to.contains(ADA), "sign-up is off, so a stranger gets none: {to}");
    let text = unquoted(&text);
    let code = code_of(&text);
    let enter = |email: &str, code: &str| json!({"type": "email", "email": email, "token": code});
    let wrong = if code == "000000" { "000001" } else { "000000" };
    assert_eq!(world.post("/verify", &enter(ADA, wrong)).answer().await.refused(), (403, "otp_expired"));
    assert_eq!(world.post("/verify", &enter("bob@example.com", &code)).answer().await.refused(), (403, "otp_expired"));
    let session = world.post("/verify", &enter(ADA, &code)).answer().await;
    assert!(session.status == 200 && session.body["user"]["email"] == ADA, "{session:?}");
    assert_eq!(world.post("/verify", &enter(ADA, &code)).answer().await.refused(), (403, "otp_expired"), "once");
    // The link in the same mail leads to the program, with a session.
    let link = text.split_whitespace().find(|word| word.contains("/verify?")).expect("a link");
    let path = link.split_once("/auth/v1").map(|(_, path)| path).expect("our address");
    let sent = world.bare(Method::GET, path).answer().await;
    let place = sent.header("location").unwrap_or_default();
    assert!(place.starts_with("http://app.example.com#") && place.contains("access_token="), "{sent:?}");
    Ok(())
}

#[tokio::test]
async fn a_code_is_not_guessed_from_anywhere() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    let mut refused = 0;
    for n in 0..20 {
        let client = format!("198.51.100.{n}");
        let body = json!({"type": "email", "email": ADA, "token": format!("{n:06}")});
        refused += u32::from(world.post("/verify", &body).header("x-test-client", &client).answer().await.status == 429);
    }
    assert!(refused >= 8, "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_confirmation_is_sent_again_to_those_who_wait_for_it() -> Result<()> {
    let (url, mut mails) = post_office().await?;
    let world = world_with(|settings| {
        settings.mailer = Some(Mailer::new(&url, "gleaner@example.com").expect("a mailer"));
        settings.signup = Signup::Confirmed;
    })
    .await?;
    world.ada().await?;
    world.post("/signup", &json!({"email": "carol@example.com", "password": PASSWORD})).answer().await;
    mails.recv().await.expect("the first mail");
    for email in [ADA, "nobody@example.com", "carol@example.com"] {
        let answer = world.post("/resend", &json!({"type": "signup", "email": email})).answer().await;
        assert_eq!((answer.status, answer.body), (200, json!({})), "{email}");
    }
    let (to, text) = mails.recv().await.expect("a mail");
    assert!(to.contains("carol"), "{to}");
    let session = world.post("/verify", &json!({"type": "signup", "token_hash": token_of(&unquoted(&text))})).answer().await;
    assert_eq!(session.status, 200, "{session:?}");
    assert_eq!(world.post("/resend", &json!({"type": "sms", "email": ADA})).answer().await.refused(), (400, "validation_failed"));
    Ok(())
}

#[tokio::test]
async fn an_administrator_makes_links_and_codes_of_every_type() -> Result<()> {
    let world = world().await?;
    world.ada().await?;
    for (kind, body) in [
        ("magiclink", json!({"type": "magiclink", "email": ADA})),
        ("magiclink", json!({"type": "magiclink", "email": "new@example.com"})),
        ("recovery", json!({"type": "recovery", "email": ADA})),
        ("invite", json!({"type": "invite", "email": "bob@example.com"})),
        ("signup", json!({"type": "signup", "email": "carol@example.com", "password": PASSWORD})),
    ] {
        let made = world.post("/admin/generate_link", &body).service().answer().await;
        assert_eq!((made.status, &made.body["verification_type"]), (200, &json!(kind)), "{made:?}");
        let by_code = json!({"type": kind, "email": body["email"], "token": made.body["email_otp"]});
        assert_eq!(world.post("/verify", &by_code).answer().await.status, 200, "{kind}");
        let by_link = json!({"type": kind, "token_hash": made.body["hashed_token"]});
        assert_eq!(world.post("/verify", &by_link).answer().await.status, 200, "{kind}");
    }
    assert_eq!(world.sign_in("carol@example.com", PASSWORD).await.status, 200);
    for body in [json!({"type": "signup", "email": ADA, "password": PASSWORD}), json!({"type": "invite", "email": ADA})] {
        assert_eq!(world.post("/admin/generate_link", &body).service().answer().await.refused(), (422, "email_exists"));
    }
    let refused = world.post("/admin/generate_link", &json!({"type": "email_change_new", "email": ADA})).service().answer().await;
    assert_eq!(refused.refused(), (400, "validation_failed"));
    Ok(())
}
