//! `gleaner channels …`: the webhook endpoints and mailboxes through which activities arrive.

mod add;
mod authorize;
mod delete;
mod list;
mod pause;
mod poll;
mod providers;
mod refusals;
mod reseal;
mod rotate;
mod set;
mod settings;
mod show;
mod test;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::App;

#[derive(Debug, Subcommand)]
#[command(after_help = "\
Examples:
  gleaner channels providers                what can be connected, and what each needs
  gleaner channels add 'US support' --provider twilio --set auth_token=@token.txt --owner ada@example.com
  gleaner channels test 'US support'        a signed sample to the real webhook URL
  gleaner channels refusals 'US support'    rejected requests, and why")]
pub(crate) enum Command {
    Add(add::Args),
    List(list::Args),
    Show(show::Args),
    Set(set::Args),
    Rotate(rotate::Args),
    Pause(pause::Pause),
    Resume(pause::Resume),
    Delete(delete::Args),
    Authorize(authorize::Args),
    Poll(poll::Args),
    Test(test::Args),
    Refusals(refusals::Args),
    Providers(providers::Args),
    Reseal(reseal::Args),
}

pub(crate) async fn run(app: &App, command: Command) -> Result<ExitCode> {
    match command {
        Command::Add(args) => add::run(app, args).await,
        Command::List(args) => list::run(app, args).await,
        Command::Show(args) => show::run(app, args).await,
        Command::Set(args) => set::run(app, args).await,
        Command::Rotate(args) => rotate::run(app, args).await,
        Command::Pause(args) => pause::pause(app, args).await,
        Command::Resume(args) => pause::resume(app, args).await,
        Command::Delete(args) => delete::run(app, args).await,
        Command::Authorize(args) => authorize::run(app, args).await,
        Command::Poll(args) => poll::run(app, args).await,
        Command::Test(args) => test::run(app, args).await,
        Command::Refusals(args) => refusals::run(app, args).await,
        Command::Providers(args) => providers::run(app, args).await,
        Command::Reseal(args) => reseal::run(app, args).await,
    }
}
