//! `gleaner agent login`.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use gleaner_agent::wire::{Settings, Wire, session, sessions};
use gleaner_http::Role;
use serde_json::json;
use zeroize::Zeroizing;

use crate::App;
use crate::output::{BOLD, GOOD, paint};
use crate::serving::Serving;

/// Sign in, so that an agent works on your behalf.
///
/// Keeps the session in a file of the home that only you can read, one for each server you sign in to, and agents renew it there.
/// The password is asked for and kept nowhere. Without --url: the server of `gleaner up` on this machine, else where you
/// signed in last. `gleaner agent status` lists who is signed in where.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner agent login                                                    to the server of `gleaner up` here
  gleaner agent login --url https://x.supabase.co --anon-key eyJ… --email ada@example.com
  pass show crm | gleaner agent login --email ada@example.com --password-stdin")]
pub(super) struct Args {
    /// Where the server is: `gleaner serve`, or a Supabase project
    #[arg(long, env = "SUPABASE_URL", hide_env_values = true, value_name = "URL")]
    url: Option<String>,
    /// The project's public key
    #[arg(long, env = "SUPABASE_ANON_KEY", hide_env_values = true, value_name = "KEY")]
    anon_key: Option<String>,
    /// The address to sign in with; asked for when left out
    #[arg(long)]
    email: Option<String>,
    /// Read the password from standard input instead of asking for it
    #[arg(long)]
    password_stdin: bool,
}

pub(super) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let home = app.target.home()?;
    let (url, anon_key) = server(&args, home.path())?;
    let path = sessions::path(home.path(), &url);
    let email = match &args.email {
        Some(email) => email.clone(),
        None => ask_for_email(&url)?,
    };
    let password = password(&args, &email)?;
    let session = session::login(&url, &anon_key, &email, &password).await?;
    session::save(&path, &session)?;
    let wire = Wire::connect(Settings { url: url.clone(), anon_key, service_key: None, session: Some(path.clone()) })?;
    // Signed in they are; whether there is work for them is another question.
    let owner = wire.who().await;
    let sales_id = owner.as_ref().ok().and_then(Option::as_ref).map(|owner| owner.sales_id.clone());
    app.out.json(&json!({"url": url, "email": session.email, "user_id": session.user_id, "sales_id": sales_id, "session": path}));
    app.out.line(format!("{} to {url} as {}", paint(GOOD, "signed in"), paint(BOLD, &session.email)));
    app.out.line(format!("  session  {}", path.display()));
    match owner {
        Ok(_) => app.out.line(format!("  owner    {}", sales_id.as_deref().unwrap_or("none"))),
        Err(error) => app.out.line(format!("  owner    none yet: {error}")),
    }
    Ok(ExitCode::SUCCESS)
}

/// Which server, and its public key.
fn server(args: &Args, home: &Path) -> Result<(String, String)> {
    let given = |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let (url, key) = (given(&args.url).map(|url| sessions::plain(&url).to_owned()), given(&args.anon_key));
    let ours = Serving::find(home).map(|serving| serving.url());
    let before = sessions::find(home, url.as_deref())?.map(|kept| kept.session);
    let Some(url) = url.or_else(|| ours.clone()).or_else(|| before.as_ref().map(|before| before.url.clone())) else {
        bail!("there is no server to sign in to\n  Name it: gleaner agent login --url https://… --anon-key …");
    };
    let known = || {
        if ours.as_ref() == Some(&url) {
            return gleaner_server::load_access(home).ok().map(|access| access.project_key(Role::Anon));
        }
        before.filter(|before| before.url == url).map(|before| before.anon_key)
    };
    let key = key.or_else(known).with_context(|| {
        format!("there is no public key for {url}\n  Give it with --anon-key or SUPABASE_ANON_KEY; on the server `gleaner status -o env` prints it")
    })?;
    Ok((url, key))
}

fn ask_for_email(url: &str) -> Result<String> {
    if !std::io::stdin().is_terminal() {
        bail!("there is no terminal to ask for an e-mail address\n  Give it: gleaner agent login --email ada@example.com --password-stdin");
    }
    eprint!("Address to sign in to {url} with: ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).context("read the address")?;
    Ok(line.trim().to_owned())
}

/// Never an argument: other users of the machine see those.
fn password(args: &Args, email: &str) -> Result<Zeroizing<String>> {
    let line = if args.password_stdin {
        let mut line = Zeroizing::new(String::new());
        std::io::stdin().read_line(&mut line).context("read the password from standard input")?;
        line
    } else {
        let asked = rpassword::prompt_password(format!("Password of {email}: "));
        Zeroizing::new(asked.context("ask for the password (there is no terminal; write it to standard input and add --password-stdin)")?)
    };
    let password = Zeroizing::new(line.trim_end_matches(['\n', '\r']).to_owned());
    if password.is_empty() {
        bail!("there is no password\n  Type it when asked, or: printf %s \"$PASSWORD\" | gleaner agent login --password-stdin …");
    }
    Ok(password)
}
