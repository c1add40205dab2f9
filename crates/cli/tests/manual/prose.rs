//! The text of the manual: one width, links that lead somewhere, tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;

use crate::page::{Page, pages, root};

const WIDTH: usize = 120;

/// Also what is no page of the manual.
fn all() -> Vec<Page> {
    let further = ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "fuzz/README.md"];
    let read = |name: &str| Page { name: name.to_owned(), text: std::fs::read_to_string(root().join(name)).expect(name) };
    pages().into_iter().chain(further.map(read)).filter(|page| !page.name.contains("/prompts/")).collect()
}

/// The lines outside of code, with their numbers.
fn prose(page: &Page) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    page.text.lines().enumerate().filter_map(move |(n, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        (!in_code && !is_fence).then_some((n + 1, line))
    })
}

#[test]
fn prose_is_no_wider_than_120_columns() {
    let target = Regex::new(r"\]\([^)]*\)").expect("a pattern");
    let mut wide = Vec::new();
    for page in all() {
        for (n, line) in prose(&page).filter(|(_, line)| !line.trim_start().starts_with(['|', '<'])) {
            // The target of a link cannot be broken.
            if target.replace_all(line, "]").chars().count() > WIDTH {
                wide.push(format!("{}:{n}", page.name));
            }
        }
    }
    assert!(wide.is_empty(), "wider than {WIDTH} columns:\n{}", wide.join("\n"));
}

#[test]
fn every_link_within_the_repository_leads_to_a_file_and_a_heading() {
    let link = Regex::new(r"\]\(([^)\s]+)\)").expect("a pattern");
    let mut broken = Vec::new();
    for page in all() {
        let folder = Path::new(&page.name).parent().expect("a folder").to_owned();
        for (n, line) in prose(&page) {
            for found in link.captures_iter(line).map(|c| c[1].to_owned()).filter(|l| !l.contains("://") && !l.starts_with("mailto:")) {
                let (file, heading) = found.split_once('#').unwrap_or((&found, ""));
                let path = if file.is_empty() { root().join(&page.name) } else { root().join(&folder).join(file) };
                let leads = path.exists() && (heading.is_empty() || headings(&path).contains(heading));
                if !leads {
                    broken.push(format!("{}:{n}: {found}", page.name));
                }
            }
        }
    }
    assert!(broken.is_empty(), "links that lead nowhere:\n{}", broken.join("\n"));
}

/// As GitHub makes anchors of them.
fn headings(path: &Path) -> BTreeSet<String> {
    let page = Page { name: String::new(), text: std::fs::read_to_string(path).unwrap_or_default() };
    let titles = prose(&page).filter_map(|(_, line)| line.strip_prefix('#').map(|t| t.trim_start_matches('#').trim().to_lowercase()));
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    titles.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_test_that_the_architecture_names_exists() {
    let page = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the page");
    let mut code = String::new();
    for folder in ["crates", "bench"] {
        read_rust(&root().join(folder), &mut code);
    }
    let name = Regex::new(r"`([a-z0-9]+(?:_[a-z0-9]+){3,})`").expect("a pattern");
    let named: BTreeSet<_> = name.captures_iter(&page).map(|c| c[1].to_owned()).collect();
    assert!(named.len() > 30, "the invariants name their tests: {}", named.len());
    let missing: Vec<_> = named.iter().filter(|test| !code.contains(&format!("fn {test}("))).collect();
    assert!(missing.is_empty(), "no such tests: {missing:?}");
}

fn read_rust(folder: &Path, code: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read_rust(&path, code);
        } else if path.extension().is_some_and(|e| e == "rs") {
            code.push_str(&std::fs::read_to_string(&path).expect("a file"));
        }
    }
}
