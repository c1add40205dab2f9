//! Signing in, the stored session, and its renewal for as long as the agent works.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use futures_util::future::try_join_all;
use gleaner::transport::Endpoint as _;
use gleaner::{Claim, Completion, Error, Outcome};
use gleaner_agent::wire::session::{self, Session};
use gleaner_agent::wire::sessions;
use gleaner_agent::wire::{Owner, Protocol, Settings, Wire};
use gleaner_supabase::auth::{Password, people};
use serde_json::json;

use crate::conformance::stage::{Home, Over, Served, Stage, connected, settled, stage};
use crate::wire::front::{Front, Trick};

const EMAIL: &str = "ada@example.com";
const PASSWORD: &str = "correct horse battery";
const TOKEN: &str = "/auth/v1/token";

/// A user with an account, a laptop, and a proxy to the server that counts requests.
struct Signed {
    stage: Stage,
    front: Front,
    sales_id: i64,
    user_id: String,
    path: PathBuf,
    _laptop: Home,
}

impl Signed {
    fn served(&self) -> Result<&Served> {
        self.stage.served.as_ref().context("served")
    }

    fn settings(&self) -> Result<Settings> {
        Ok(Settings {
            url: self.front.url.clone(),
            anon_key: self.served()?.anon.clone(),
            service_key: None,
            session: Some(self.path.clone()),
        })
    }

    fn wire(&self) -> Result<Wire> {
        Ok(Wire::connect(self.settings()?)?)
    }

    fn kept(&self) -> Result<Session> {
        session::load(&self.path)?.context("kept")
    }

    /// Changes the stored session.
    fn keep(&self, change: impl FnOnce(&mut Session)) -> Result<Session> {
        let mut kept = self.kept()?;
        change(&mut kept);
        session::save(&self.path, &kept)?;
        Ok(kept)
    }

    /// A token of the user that expires at the given time, or has already expired.
    fn token(&self, expires_in: i64) -> Result<String> {
        let session = self.stage.text("select id::text from auth.sessions limit 1").await_now()?;
        let claims = json!({"role": "authenticated", "sub": self.user_id, "session_id": session, "exp": now() + expires_in});
        Ok(gleaner_server::load_access(&self.served()?.home.0)?.sign(claims.as_object().context("an object")?))
    }
}

/// Runs a small query where async is not possible.
trait AwaitNow<T> {
    fn await_now(self) -> T;
}

impl<T, F: Future<Output = T>> AwaitNow<T> for F {
    fn await_now(self) -> T {
        tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(self))
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs() as i64)
}

fn mode(path: &Path) -> Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
}

async fn signed_in() -> Result<Signed> {
    let stage = stage(Over::Native).await?;
    let added = people::add(&stage.world.client, EMAIL, Some(Password::new(PASSWORD)), false).await.map_err(|e| anyhow::anyhow!("{e}"))?;
    let served = stage.served.as_ref().context("served")?;
    let front = Front::before(&served.url()).await?;
    let laptop = Home::new()?;
    let path = sessions::path(&laptop.0, &front.url);
    let session = session::login(&format!("{}/", front.url), &served.anon, " Ada@Example.com", PASSWORD).await?;
    session::save(&path, &session)?;
    let (sales_id, user_id) = (added.sales_id.context("a member")?, added.id.to_string());
    Ok(Signed { stage, front, sales_id, user_id, path, _laptop: laptop })
}

#[tokio::test]
async fn only_its_owner_can_read_the_session() -> Result<()> {
    let signed = signed_in().await?;
    assert_eq!((mode(&signed.path)?, mode(signed.path.parent().context("a folder")?)?), (0o600, 0o700));
    let kept = signed.kept()?;
    assert_eq!(
        (kept.email.as_str(), kept.user_id.as_str(), kept.url.as_str()),
        (EMAIL, signed.user_id.as_str(), signed.front.url.as_str())
    );
    assert!(kept.expires_at > now() + 3000);
    assert!(!format!("{kept:?} {:?}", signed.settings()?).contains(&kept.access_token), "tokens are not for logs");
    // A file that was made readable for others is made private again.
    std::fs::set_permissions(&signed.path, std::fs::Permissions::from_mode(0o644))?;
    signed.kept()?;
    assert_eq!(mode(&signed.path)?, 0o600);
    // No temporary file stays behind, and the replaced file is as private as the first.
    signed.keep(|_| {})?;
    let names: Vec<_> =
        std::fs::read_dir(signed.path.parent().context("a folder")?)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_>>()?;
    assert_eq!((names, mode(&signed.path)?), (vec![signed.path.file_name().context("a name")?.to_owned()], 0o600));
    Ok(())
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_nothing_is_stored() -> Result<()> {
    let signed = signed_in().await?;
    let error = session::login(&signed.front.url, &signed.served()?.anon, EMAIL, "wrong").await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("check the address and the password"), "{error}");
    let error = session::login(&signed.front.url, "no key", EMAIL, PASSWORD).await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("SUPABASE_ANON_KEY"), "{error}");
    let error = session::login("http://127.0.0.1:9", "key", EMAIL, PASSWORD).await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_signed_in_person_works_their_own_field_first() -> Result<()> {
    let signed = signed_in().await?;
    let world = &signed.stage.world;
    let global = world.activity(None, "call", 60.0).await?;
    let own = world.activity(Some(signed.sales_id), "call", 1.0).await?;
    for way in [Protocol::Native, Protocol::Rpc] {
        let wire = Wire::connect_by(signed.settings()?, way)?;
        let owner = Owner { sales_id: signed.sales_id.to_string(), user_id: signed.user_id.clone(), email: EMAIL.into() };
        assert_eq!(wire.who().await?, Some(owner.clone()));
        let activities = wire.open("activities").await?;
        let items = activities.claim(&Claim::by("laptop").owner(&owner.sales_id).limit(2)).await?.items;
        assert_eq!(items.iter().map(|item| item.key.clone()).collect::<Vec<_>>(), [own.clone(), global.clone()], "{way:?}");
        let held: Vec<_> = items.iter().map(|item| item.held()).collect();
        assert_eq!(activities.ended(&held).await?, []);
        assert!(activities.release(&held).await?.iter().all(|answer| answer.outcome == Outcome::Done));
        let other = activities.claim(&Claim::by("laptop").owner(signed.sales_id + 1)).await.unwrap_err();
        assert!(matches!(other, Error::Remote { status: Some(403), transient: false, .. }), "nobody speaks for others: {other}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_expires_during_work_is_renewed_and_the_work_continues() -> Result<()> {
    for way in [Protocol::Native, Protocol::Rpc] {
        let signed = signed_in().await?;
        signed.stage.world.activity(Some(signed.sales_id), "call", 1.0).await?;
        let before = signed.front.count(TOKEN);
        // By our clock the token is valid for long, but the server refuses it.
        let old = signed.keep(|kept| kept.access_token = signed.token(-60).expect("signed"))?;
        let wire = Wire::connect_by(signed.settings()?, way)?;
        let activities = wire.open("activities").await?;
        let item = activities.claim(&Claim::by("laptop")).await?.items.into_iter().next().context("claimed")?;
        assert_eq!(activities.complete(&[Completion::new(item.held(), Some(json!({})))]).await?[0].outcome, Outcome::Done);
        let kept = signed.kept()?;
        assert!(kept.access_token != old.access_token && kept.refresh_token != old.refresh_token, "{way:?}: the file is new");
        assert_eq!((signed.front.count(TOKEN) - before, mode(&signed.path)?), (1, 0o600), "{way:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_session_is_renewed_before_it_ends() -> Result<()> {
    let signed = signed_in().await?;
    let old = signed.keep(|kept| kept.expires_at = now() - 1)?;
    let wire = signed.wire()?;
    wire.queues().await?;
    assert_ne!(signed.kept()?.refresh_token, old.refresh_token);
    let count = signed.front.count(TOKEN);
    wire.queues().await?;
    assert_eq!(signed.front.count(TOKEN), count, "once is enough");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_that_share_a_session_renew_it_once_for_all() -> Result<()> {
    let signed = signed_in().await?;
    for refused_by_the_server in [true, false, true] {
        let before = signed.front.count(TOKEN);
        signed.keep(|kept| {
            if refused_by_the_server {
                kept.access_token = signed.token(-60).expect("signed");
            } else {
                kept.expires_at = now() - 1;
            }
        })?;
        // All of them read the old token, and find it expired at the same time.
        let agents: Vec<Wire> = (0..6).map(|_| signed.wire()).collect::<Result<_>>()?;
        try_join_all(agents.iter().map(|wire| wire.queues())).await?;
        assert_eq!(signed.front.count(TOKEN) - before, 1, "{refused_by_the_server}");
    }
    assert_eq!(signed.stage.world.count("select count(*) from auth.sessions").await?, 1, "the session still stands");
    Ok(())
}

#[tokio::test]
async fn a_session_that_was_ended_says_to_sign_in_again() -> Result<()> {
    let signed = signed_in().await?;
    signed.stage.world.run("delete from auth.sessions").await?;
    signed.keep(|kept| kept.expires_at = now() - 1)?;
    let (wire, before) = (signed.wire()?, signed.front.count(TOKEN));
    for _ in 0..3 {
        let error = wire.queues().await.unwrap_err();
        assert!(!error.is_transient() && error.to_string().contains("gleaner agent login"), "{error}");
    }
    assert_eq!(signed.front.count(TOKEN) - before, 1, "asking again would only be noise");
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_renew_now_does_not_end_the_session() -> Result<()> {
    let signed = signed_in().await?;
    let old = signed.keep(|kept| kept.expires_at = now() - 1)?;
    signed.front.play(TOKEN, [Trick::Answer(503, None), Trick::Answer(429, None)]);
    let wire = signed.wire()?;
    for _ in 0..2 {
        let error = wire.queues().await.unwrap_err();
        assert!(error.is_transient(), "{error}");
    }
    assert_eq!(signed.kept()?, old);
    wire.queues().await?;
    Ok(())
}

#[tokio::test]
async fn a_lost_answer_to_a_renewal_does_not_end_the_session() -> Result<()> {
    let signed = signed_in().await?;
    signed.keep(|kept| kept.expires_at = now() - 1)?;
    signed.front.play(TOKEN, [Trick::Lose]);
    let wire = signed.wire()?;
    let error = wire.queues().await.unwrap_err();
    assert!(error.is_transient(), "{error}");
    wire.queues().await?;
    Ok(())
}

#[tokio::test]
async fn signing_out_ends_the_session_here_and_there() -> Result<()> {
    let signed = signed_in().await?;
    let wire = signed.wire()?;
    wire.queues().await?;
    assert!(session::logout(&signed.path).await?);
    assert!(!signed.path.exists());
    assert_eq!(signed.stage.world.count("select count(*) from auth.sessions").await?, 0);
    assert!(!session::logout(&signed.path).await?, "the session is gone");
    let error = signed.wire()?.queues().await.unwrap_err();
    assert!(!error.is_transient() && error.to_string().contains("not signed in"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_channel_outlives_the_token_it_was_opened_with() -> Result<()> {
    let signed = signed_in().await?;
    // It is renewed in the last quarter of its lifetime: three seconds, which a busy machine needs.
    signed.keep(|kept| {
        kept.url = signed.served().expect("served").url();
        kept.access_token = signed.token(12).expect("signed");
        kept.expires_at = now() + 12;
    })?;
    let settings = Settings { url: signed.served()?.url(), ..signed.settings()? };
    let wire = Wire::connect_by(settings, Protocol::Rpc)?;
    let mut push = wire.open("activities").await?.listen().context("pushed")?;
    connected(&mut push, true).await?;
    for _ in 0..140 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(push.is_connected(), "it was told of the new token in time");
    }
    settled(&mut push).await;
    signed.stage.world.activity(None, "call", 1.0).await?;
    tokio::time::timeout(Duration::from_secs(1), push.notified()).await.context("not heard")?;
    Ok(())
}

#[tokio::test]
async fn settings_come_from_the_supabase_variables_and_from_the_session() -> Result<()> {
    let signed = signed_in().await?;
    let home = signed.path.ancestors().nth(3).context("home")?;
    let read = |pairs: &[(&str, &str)]| {
        Settings::from_variables(home, |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    };
    let kept = read(&[])?.context("the session knows")?;
    assert_eq!(kept, signed.settings()?);
    assert_eq!(read(&[("SUPABASE_URL", &format!("{}/", signed.front.url))])?, Some(kept));
    let other = read(&[("SUPABASE_URL", "https://x.supabase.co"), ("SUPABASE_ANON_KEY", "anon"), ("SUPABASE_SERVICE_KEY", "old")])?
        .context("given")?;
    assert_eq!(
        (other.url.as_str(), other.anon_key.as_str(), other.service_key.as_deref(), other.session),
        ("https://x.supabase.co", "anon", Some("old"), None)
    );
    let both =
        read(&[("SUPABASE_URL", "https://x"), ("SUPABASE_SERVICE_KEY", "old"), ("SUPABASE_SERVICE_ROLE_KEY", "new")])?.context("given")?;
    assert_eq!(both.service_key.as_deref(), Some("new"));
    let worker =
        read(&[("SUPABASE_URL", "https://x"), ("SUPABASE_SERVICE_KEY", "old"), ("GLEANER_KEY", "sb_secret_x")])?.context("given")?;
    assert_eq!(worker.service_key.as_deref(), Some("sb_secret_x"));
    assert!(read(&[("SUPABASE_URL", "https://x"), ("SUPABASE_ANON_KEY", " ")]).unwrap_err().to_string().contains("SUPABASE_ANON_KEY"));
    let nowhere = Home::new()?;
    assert_eq!(Settings::from_variables(&nowhere.0, |_| None)?, None);
    Ok(())
}
