//! All settings of an agent.

/// One setting: its key in `agent.toml`, the variables that set it, and its default.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub key: &'static str,
    /// Read in this order; the first one that is set counts.
    pub variables: &'static [&'static str],
    pub default: Option<&'static str>,
    /// For people: what applies when there is no default.
    pub otherwise: &'static str,
    pub secret: bool,
    pub about: &'static str,
}

const fn setting(key: &'static str, variables: &'static [&'static str], about: &'static str) -> Setting {
    Setting { key, variables, default: None, otherwise: "", secret: false, about }
}

impl Setting {
    const fn or(mut self, default: &'static str) -> Self {
        self.default = Some(default);
        self
    }

    const fn otherwise(mut self, text: &'static str) -> Self {
        self.otherwise = text;
        self
    }

    const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    pub fn find(key: &str) -> Option<&'static Self> {
        ALL.iter().find(|setting| setting.key == key)
    }
}

pub const ALL: &[Setting] = &[
    setting("name", &["GLEANER_AGENT_NAME"], "Tells the agents of one machine apart").or("agent"),
    setting("worker", &["WORKER_ID"], "Known to the database as the holder of what it claims").otherwise("a new one at each start"),
    setting("database_url", &["DATABASE_URL"], "The database, spoken to directly")
        .otherwise("the server, else what `gleaner up` runs")
        .secret(),
    setting("url", &["SUPABASE_URL"], "The server, Gleaner's own or a Supabase project").otherwise("that of the session"),
    setting("anon_key", &["SUPABASE_ANON_KEY"], "The server's public key").otherwise("none").secret(),
    setting(
        "service_key",
        &["GLEANER_KEY", "SUPABASE_SERVICE_ROLE_KEY", "SUPABASE_SERVICE_KEY"],
        "A worker's key, or one that may do everything; the latter is not for laptops",
    )
    .otherwise("the session of `gleaner agent login`")
    .secret(),
    setting("session", &["GLEANER_AGENT_SESSION"], "The file with the session of `gleaner agent login`")
        .otherwise("that of the server, in agent/sessions of the home"),
    setting("owner", &["GLEANER_AGENT_OWNER"], "Whose work comes first").otherwise("who signed in, else nobody"),
    setting("queues", &["GLEANER_AGENT_QUEUES"], "Only these of the pipelines' queues").otherwise("all of the pipelines'"),
    setting("kinds", &["GLEANER_AGENT_KINDS"], "Only these kinds").otherwise("all it can process"),
    setting("pipelines", &["GLEANER_AGENT_PIPELINES"], "The file that says what is done to an item").otherwise("built in, offline"),
    setting("recordings", &["GLEANER_AGENT_RECORDINGS"], "Without a server: beginnings of addresses from which recordings may be fetched")
        .otherwise("through the server only"),
    setting("concurrency", &["GLEANER_AGENT_CONCURRENCY"], "Items in work at once, in all queues together").or("4"),
    setting("prefetch", &["GLEANER_AGENT_PREFETCH"], "Items taken beyond those in work").or("0"),
    setting("grace", &["GLEANER_AGENT_GRACE"], "How long running work may take to finish when asked to stop").or("30s"),
    setting("watch", &["GLEANER_AGENT_WATCH"], "How often running work is checked for having been cancelled").or("5s"),
    setting("wake", &["GLEANER_AGENT_WAKE"], "hybrid, poll-only or push-only").or("hybrid"),
    setting("poll.base", &["GLEANER_AGENT_POLL_BASE"], "The first wait between looks without push").or("5s"),
    setting("poll.max", &["GLEANER_AGENT_POLL_MAX"], "The longest wait without push").or("30s"),
    setting("poll.factor", &["GLEANER_AGENT_POLL_FACTOR"], "How much longer each empty look makes the wait").or("1.5"),
    setting("poll.unnotified", &["GLEANER_AGENT_POLL_UNNOTIFIED"], "The longest wait while rows may arrive without a notification")
        .or("1s"),
    setting("poll.pushed_base", &["GLEANER_AGENT_POLL_PUSHED_BASE"], "The first wait while push works").or("30s"),
    setting("poll.pushed_max", &["GLEANER_AGENT_POLL_PUSHED_MAX"], "The longest wait while push works").or("60s"),
    setting("poll.jitter", &["GLEANER_AGENT_POLL_JITTER"], "Share of a wait added at random, so that a fleet does not poll together")
        .or("0.1"),
    setting("poll.seed", &["GLEANER_AGENT_POLL_SEED"], "Makes the jitter repeatable, for tests").otherwise("random"),
    setting("status", &["GLEANER_AGENT_STATUS"], "Where the status page listens, on loopback; off is none").or("127.0.0.1:7433"),
];
