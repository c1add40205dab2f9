//! Each sink against a server of its shape: what arrives, once, and what a refusal means.

use anyhow::Result;
use serde_json::json;

use super::mail::MailServer;
use super::world::{World, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn mail_goes_out_by_smtp_once_and_in_the_conversation() -> Result<()> {
    let world = World::new().await?;
    let mail = MailServer::start().await?;
    world.contact("Ada", "ada@example.com").await?;
    // What she wrote before the follow-up was planned is the conversation it belongs to.
    world
        .client
        .batch_execute(
            "insert into activities (type, raw_data, metadata, sender_kind, sender_address, created_at)
             values ('email', '{\"content\": \"How much?\", \"subject\": \"Offer\"}', '{\"rfc_message_id\": \"<1@example.com>\"}', 'email', 'ada@example.com',
                     now() - interval '1 hour')",
        )
        .await?;
    let agent = world.agent(&[("followups.smtp_url", &mail.url), ("followups.mail_from", "Sales <sales@acme.example>")]).await?;
    let id = world
        .plan("ada@example.com", "0 seconds", json!({"text": "Grüße", "sink": "email", "unsubscribe_url": "https://acme.example/u"}))
        .await?;
    world.until(&id, "executed").await?;
    let got = mail.got();
    assert_eq!(got.len(), 1);
    let (to, text) = &got[0];
    assert_eq!(to, "ada@example.com");
    for line in [
        "Subject: Re: Offer",
        "In-Reply-To: <1@example.com>",
        "Auto-Submitted: auto-generated",
        "List-Unsubscribe: <https://acme.example/u>",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        &format!("Message-ID: <{id}@acme.example>"),
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    let result = world.json(&format!("select result from scheduled_actions where id = '{id}'")).await?;
    assert_eq!((&result["message_id"], &result["receipt_id"]), (&json!(format!("<{id}@acme.example>")), &json!("pm-1")));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mail_server_that_refuses_for_good_is_not_asked_again() -> Result<()> {
    let world = World::new().await?;
    let mail = MailServer::start().await?;
    mail.refuse("550 no such user");
    let agent = world.agent(&[("followups.smtp_url", &mail.url), ("followups.mail_from", "sales@acme.example")]).await?;
    let id = world.plan("nobody@example.com", "0 seconds", json!({"text": "Hello", "sink": "email"})).await?;
    eventually("it to be given up", async || {
        Ok(world.text(&format!("select status || ' ' || attempts from scheduled_actions where id = '{id}' and due_at is null")).await?
            == "failed 1")
    })
    .await?;
    assert!(world.text(&format!("select error_message from scheduled_actions where id = '{id}'")).await?.contains("550"));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_gets_the_chat_and_the_text_and_a_blocked_bot_is_remembered() -> Result<()> {
    let world = World::new().await?;
    world.answer_body(json!({"ok": true, "result": {"message_id": 99, "chat": {"id": 7836623698_u64}}}));
    let flags = [("followups.telegram_token", "1:secret"), ("followups.telegram_url", world.endpoint()), ("followups.sink", "telegram")];
    let agent = world.agent(&flags).await?;
    let id = world.plan("7836623698", "0 seconds", json!({"text": "Hello"})).await?;
    world.until(&id, "executed").await?;
    let got = world.received(1).await?;
    assert_eq!(got[0].path, "/bot1:secret/sendMessage");
    assert_eq!(got[0].body, json!({"chat_id": "7836623698", "text": "Hello"}));
    assert_eq!(world.text(&format!("select result ->> 'message_id' from scheduled_actions where id = '{id}'")).await?, "99");
    // The person blocks the bot.
    world.answer_with(403);
    world.answer_body(json!({"ok": false, "error_code": 403, "description": "Forbidden: bot was blocked by the user"}));
    let blocked = world.plan("7836623698", "0 seconds", json!({"text": "Hello again"})).await?;
    world.until(&blocked, "cancelled").await?;
    assert_eq!(
        world.text("select reason from do_not_contact where address = '7836623698'").await?,
        "Telegram: Forbidden: bot was blocked by the user"
    );
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn twilio_sends_text_messages_and_whatsapp_and_its_receipt_comes_back() -> Result<()> {
    let world = World::new().await?;
    let contact = world.contact_with_phone("Ada", "+4915112345678").await?;
    world.answer_body(json!({"sid": "SM1", "status": "queued"}));
    let flags = [
        ("followups.twilio_account", "AC1"),
        ("followups.twilio_token", "secret"),
        ("followups.twilio_from", "+4930123"),
        ("followups.twilio_whatsapp_from", "+4930124"),
        ("followups.twilio_url", world.endpoint()),
    ];
    let agent = world.agent(&flags).await?;
    let id = world.plan(&format!("contact:{contact}"), "0 seconds", json!({"text": "Hello", "sink": "sms"})).await?;
    world.until(&id, "executed").await?;
    let whatsapp = world.plan(&format!("contact:{contact}"), "0 seconds", json!({"text": "Hello", "sink": "whatsapp"})).await?;
    world.until(&whatsapp, "executed").await?;
    let got = world.received(2).await?;
    assert_eq!(got[0].path, "/2010-04-01/Accounts/AC1/Messages.json");
    assert_eq!(got[0].body, json!({"To": "+4915112345678", "From": "+4930123", "Body": "Hello"}));
    assert_eq!(got[1].body, json!({"To": "whatsapp:+4915112345678", "From": "whatsapp:+4930124", "Body": "Hello"}));
    // As the webhook endpoint stores what Twilio reports; a late `sent` does not undo `delivered`.
    for status in ["delivered", "sent"] {
        world
            .client
            .execute(
                "insert into gleaner.ingest_memory as m (provider_id, key, value, expires_at)
                 values ('00000000-0000-0000-0000-000000000001', 'receipt:SM1', jsonb_build_object('status', $1::text, 'final', $1::text = 'delivered'), now() + interval '1 day')
                 on conflict (provider_id, key) do update set value = excluded.value",
                &[&status],
            )
            .await?;
    }
    let told = world.text(&format!("select result #>> '{{receipt,status}}' from scheduled_actions where id = '{id}'")).await?;
    let shown =
        world.text(&format!("select metadata #>> '{{delivery,status}}' from activities where metadata ->> 'followup_id' = '{id}'")).await?;
    assert_eq!((told.as_str(), shown.as_str()), ("delivered", "delivered"));
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_the_message_and_the_key() -> Result<()> {
    let world = World::new().await?;
    let file = world.home().join("got.json");
    let line = format!("cat > {} && echo '{{\"message_id\": \"c-1\"}}'", file.display());
    let agent = world.agent(&[("followups.command", &line), ("followups.sink", "command")]).await?;
    let id = world.plan("ada", "0 seconds", json!({"text": "Hello"})).await?;
    world.until(&id, "executed").await?;
    let got: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    assert_eq!((&got["key"], &got["message"]["text"]), (&json!(id), &json!("Hello")));
    assert_eq!(world.text(&format!("select result ->> 'message_id' from scheduled_actions where id = '{id}'")).await?, "c-1");
    agent.stop().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_row_names_is_requested_only_where_it_is_allowed() -> Result<()> {
    let world = World::new().await?;
    let agent = world.agent(&[]).await?;
    let id = world.plan("ada", "0 seconds", json!({"text": "Hello", "url": "http://169.254.169.254/latest"})).await?;
    world.until(&id, "failed").await?;
    assert!(world.text(&format!("select error_message from scheduled_actions where id = '{id}'")).await?.contains("FOLLOWUP_HTTP_ALLOW"));
    assert_eq!(world.count(), 0);
    agent.stop().await?;
    Ok(())
}
