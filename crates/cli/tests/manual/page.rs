//! Pages, and the blocks in them that a reader would type.

use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) struct Page {
    /// From the root of the repository.
    pub name: String,
    pub text: String,
}

/// What is done with a page, in its order.
pub(crate) enum Part {
    Setup(String),
    Block(Block),
}

pub(crate) struct Block {
    /// Of the page, counted from 1: the first line of the block's body.
    pub line: usize,
    pub run: Run,
    pub steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Run {
    Here,
    Not(String),
    By(String),
}

/// A command with the output that the page shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub line: usize,
    pub sql: bool,
    pub command: String,
    pub shown: Vec<String>,
}

/// README and all pages below docs and examples.
pub(crate) fn pages() -> Vec<Page> {
    let root = root();
    let mut names = vec!["README.md".to_owned()];
    for folder in ["docs", "examples"] {
        collect(&root, Path::new(folder), &mut names);
    }
    names.sort();
    let read = |name: String| Page { text: std::fs::read_to_string(root.join(&name)).expect("a page"), name };
    names.into_iter().map(read).collect()
}

fn collect(root: &Path, folder: &Path, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(root.join(folder)).expect("a folder") {
        let entry = entry.expect("an entry");
        let path = folder.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            collect(root, &path, names);
        } else if path.extension().is_some_and(|e| e == "md") {
            names.push(path.to_str().expect("plain").to_owned());
        }
    }
}

impl Page {
    pub(crate) fn parts(&self) -> Vec<Part> {
        let lines: Vec<&str> = self.text.lines().collect();
        let (mut parts, mut run, mut at) = (Vec::new(), Run::Here, 0);
        while at < lines.len() {
            let line = lines[at].trim();
            if let Some(comment) = line.strip_prefix("<!--") {
                let end = (at..lines.len()).find(|n| lines[*n].contains("-->")).expect("the comment ends");
                let rest = lines[at + 1..=end].iter().fold(comment.to_owned(), |all, next| all + "\n" + next);
                let text = rest.trim().trim_end_matches("-->").trim();
                if let Some(reason) = text.strip_prefix("not run:") {
                    run = Run::Not(reason.trim().to_owned());
                } else if let Some(test) = text.strip_prefix("run by:") {
                    run = Run::By(test.trim().to_owned());
                } else if let Some(commands) = text.strip_prefix("setup:") {
                    parts.push(Part::Setup(commands.trim().to_owned()));
                }
                at = end + 1;
            } else if let Some(language) = line.strip_prefix("```") {
                let end = (at + 1..lines.len()).find(|n| lines[*n].trim() == "```").expect("the block ends");
                let indent = lines[at].len() - lines[at].trim_start().len();
                let body: Vec<&str> = lines[at + 1..end].iter().map(|l| l.get(indent..).unwrap_or_default()).collect();
                let steps = match language {
                    "console" => console(&body, at + 2),
                    "sh" => vec![Step { line: at + 2, sql: false, command: body.join("\n"), shown: Vec::new() }],
                    _ => Vec::new(),
                };
                if !steps.is_empty() {
                    parts.push(Part::Block(Block { line: at + 2, run: std::mem::replace(&mut run, Run::Here), steps }));
                }
                at = end + 1;
            } else {
                if !line.is_empty() {
                    run = Run::Here;
                }
                at += 1;
            }
        }
        parts
    }
}

fn console(body: &[&str], first: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for (n, line) in body.iter().enumerate() {
        let prompt = ["=> ", "gleaner=# "].iter().find_map(|p| line.strip_prefix(p));
        let begins = line.strip_prefix("$ ").map(|c| (c, false)).or(prompt.map(|c| (c, true)));
        if let Some((command, sql)) = begins {
            steps.push(Step { line: first + n, sql, command: command.to_owned(), shown: Vec::new() });
        } else if let Some(step) = steps.last_mut() {
            if step.shown.is_empty() && goes_on(&step.command, step.sql) {
                step.command.push('\n');
                step.command.push_str(line);
            } else {
                step.shown.push((*line).to_owned());
            }
        }
    }
    steps
}

/// Whether the next line belongs to the command: an open quote, a backslash, or a statement without its semicolon.
fn goes_on(command: &str, sql: bool) -> bool {
    if sql {
        let statement: String = command.lines().map(|l| l.split(" --").next().unwrap_or_default().to_owned() + "\n").collect();
        return !command.starts_with("--") && !statement.trim_end().ends_with(';');
    }
    let (mut quote, mut escaped) = (None, false);
    for c in command.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (None | Some('"'), '\\') => escaped = true,
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    quote.is_some() || escaped
}

#[test]
fn a_block_is_read_as_commands_with_their_output() {
    let text = "<!-- not run: needs a network -->\n```console\n$ curl -d '{\n  }' x \\\n    y\nok\n=> select 1\n   ;\n one\n```\n";
    let page = Page { name: "p".into(), text: text.into() };
    let parts = page.parts();
    let [Part::Block(block)] = &parts[..] else { panic!("one block") };
    assert_eq!(block.run, Run::Not("needs a network".into()));
    let [curl, select] = &block.steps[..] else { panic!("two commands") };
    assert_eq!((curl.command.as_str(), &curl.shown[..]), ("curl -d '{\n  }' x \\\n    y", &["ok".to_owned()][..]));
    assert_eq!((select.command.as_str(), &select.shown[..], select.sql), ("select 1\n   ;", &[" one".to_owned()][..], true));
}
