//! `gleaner read-document`: the process in which an agent has one document read. Not for people.

use std::process::ExitCode;

/// Read the document on standard input and write its text.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What it is
    media_type: String,
}

pub(crate) fn run(args: &Args) -> ExitCode {
    gleaner_documents::child(&args.media_type)
}
