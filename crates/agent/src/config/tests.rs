//! Which source wins for each setting.

use super::*;

/// A directory with an `agent.toml` in it.
struct Folder(PathBuf);

impl Folder {
    fn with(file: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("gleaner-config-{}", Uuid::new_v4()));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join(layers::FILE), file).expect("a file");
        Self(folder)
    }

    fn sources(&self, variables: &[(&str, &str)], flags: &[(&'static str, &str)]) -> Sources {
        Sources {
            home: self.0.clone(),
            file: None,
            flags: flags.iter().map(|(key, value)| (*key, (*value).to_owned())).collect(),
            variables: variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn from<'a>(config: &'a Config, key: &str) -> &'a str {
    config.effective().iter().find(|setting| setting.key == key).map_or("", |setting| &setting.from)
}

#[test]
fn flags_win_over_the_environment_over_the_file_over_the_defaults() {
    let folder = Folder::with("concurrency = 2\nprefetch = 3\ngrace = \"1min\"\n[poll]\nbase = 1\nmax = \"20s\"\n");
    let variables = [("GLEANER_AGENT_CONCURRENCY", "5"), ("GLEANER_AGENT_PREFETCH", "6"), ("GLEANER_AGENT_POLL_FACTOR", "")];
    let config = Config::load(folder.sources(&variables, &[("concurrency", "9")])).expect("it can be read");
    assert_eq!((config.concurrency, config.prefetch, config.grace), (9, 6, Duration::from_secs(60)));
    assert_eq!((config.poll.base, config.poll.max, config.poll.factor), (Duration::from_secs(1), Duration::from_secs(20), 1.5));
    let file = folder.0.join("agent.toml").display().to_string();
    let origins = ["concurrency", "prefetch", "grace", "poll.base", "poll.factor"].map(|key| from(&config, key));
    assert_eq!(origins, ["flag", "GLEANER_AGENT_PREFETCH", &file, &file, "default"]);
}

#[test]
fn the_defaults_are_those_of_the_polling_strategy() {
    let config = Config::load(Folder::with("").sources(&[], &[])).expect("defaults");
    let seconds = Duration::from_secs;
    let Poll { base, max, factor, unnotified, pushed_base, pushed_max, jitter, seed } = config.poll;
    assert_eq!((base, max, factor, pushed_base, pushed_max), (seconds(5), seconds(30), 1.5, seconds(30), seconds(60)));
    assert_eq!(unnotified, seconds(1));
    assert!(jitter > 0.0 && seed.is_none() && config.wake == Wake::Hybrid);
    assert_eq!(config.status.map(|listen| (listen.address.to_string(), listen.or_next)), Some(("127.0.0.1:7433".into(), true)));
}

#[test]
fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
    let folder = Folder::with("concurency = 2\n[poll]\nbas = 1\nzebra = 1\n");
    let message = Config::load(folder.sources(&[], &[])).expect_err("two slips").to_string();
    assert!(message.contains("\"concurency\"; did you mean \"concurrency\"?"), "{message}");
    assert!(message.contains("\"poll.bas\"; did you mean \"poll.base\"?"), "{message}");
    assert!(message.contains("zebra") && message.contains("agent.toml"), "{message}");
}

#[test]
fn every_mistake_is_reported_at_once_with_its_place() {
    let folder = Folder::with("grace = \"soon\"\n[poll]\nbase = \"60s\"\n");
    let message = Config::load(folder.sources(&[("GLEANER_AGENT_WAKE", "never")], &[("concurrency", "0")])).expect_err("four").to_string();
    for part in
        ["--concurrency: concurrency = \"0\"", "GLEANER_AGENT_WAKE", "push-only", "agent.toml: grace", "poll.max", "is less than poll.base"]
    {
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[test]
fn the_more_urgent_source_names_the_place() {
    let folder = Folder::with("url = \"https://x.example.com/\"\nservice_key = \"secret\"\n");
    let endpoint = |variables: &[(&str, &str)], flags: &[(&'static str, &str)]| {
        Config::load(folder.sources(variables, flags)).expect("an endpoint").endpoint
    };
    let wire = |url: &str| {
        EndpointAt::Wire(Settings { url: url.into(), anon_key: String::new(), service_key: Some("secret".into()), session: None })
    };
    let direct = EndpointAt::Direct("postgresql:///a".into());
    assert_eq!(endpoint(&[], &[]), wire("https://x.example.com"));
    assert_eq!(endpoint(&[("DATABASE_URL", "postgresql:///a")], &[]), direct);
    assert_eq!(endpoint(&[("DATABASE_URL", "postgresql:///a")], &[("url", "http://y")]), wire("http://y"));
    assert_eq!(endpoint(&[("DATABASE_URL", "postgresql:///a"), ("SUPABASE_URL", "http://z")], &[]), direct);
    let nothing = Folder::with("");
    assert_eq!(Config::load(nothing.sources(&[], &[])).expect("an endpoint").endpoint, EndpointAt::Home(nothing.0.clone()));
}

#[test]
fn a_signed_in_user_needs_no_further_settings() {
    let folder = Folder::with("");
    let kept = session::Session {
        url: "http://there".into(),
        anon_key: "public".into(),
        access_token: "a".into(),
        refresh_token: "r".into(),
        expires_at: 0,
        user_id: "u".into(),
        email: "ada@example.com".into(),
        signed_in_at: 0,
    };
    let path = sessions::path(&folder.0, "http://there");
    session::save(&path, &kept).expect("a session");
    let wire = |session| EndpointAt::Wire(Settings { url: "http://there".into(), anon_key: "public".into(), service_key: None, session });
    assert_eq!(Config::load(folder.sources(&[], &[])).expect("an endpoint").endpoint, wire(Some(path)));
    // The session is for that server, and not for another.
    let message = Config::load(folder.sources(&[("SUPABASE_URL", "http://elsewhere")], &[])).expect_err("no key").to_string();
    assert!(message.contains("gleaner agent login") && message.contains("SUPABASE_URL"), "{message}");
}

#[test]
fn the_supabase_variables_are_read_and_secrets_are_covered() {
    let variables =
        [("WORKER_ID", "laptop"), ("SUPABASE_URL", "http://x"), ("SUPABASE_SERVICE_KEY", "old"), ("SUPABASE_SERVICE_ROLE_KEY", "hidden")];
    let config = Config::load(Folder::with("").sources(&variables, &[])).expect("an endpoint");
    assert_eq!(config.worker, "laptop");
    assert!(matches!(&config.endpoint, EndpointAt::Wire(settings) if settings.service_key.as_deref() == Some("hidden")));
    let shown = format!("{:?} {config:?}", config.effective());
    assert!(!shown.contains("hidden") && shown.contains("(set)") && from(&config, "service_key") == "SUPABASE_SERVICE_ROLE_KEY");
}
