//! `gleaner completions`.

use std::process::ExitCode;

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::{App, Cli};

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  gleaner completions bash > ~/.local/share/bash-completion/completions/gleaner
  gleaner completions zsh > ~/.zfunc/_gleaner
  gleaner completions fish > ~/.config/fish/completions/gleaner.fish")]
pub(crate) struct Args {
    /// For which shell
    shell: Shell,
}

pub(crate) async fn run(app: &App, args: Args) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "gleaner", &mut script);
    app.out.data(String::from_utf8_lossy(&script).trim_end());
    Ok(ExitCode::SUCCESS)
}
