use crate::support::Gleaner;

/// The names under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let mut names: Vec<String> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .collect();
    names.retain(|name| name != "help");
    names
}

#[test]
fn every_subcommand_helps_with_an_example() {
    let gleaner = Gleaner::at_home();
    let mut left: Vec<Vec<String>> = vec![vec![]];
    let mut seen = 0;
    while let Some(path) = left.pop() {
        let mut args: Vec<&str> = path.iter().map(String::as_str).collect();
        args.push("--help");
        let help = gleaner.ok(&args);
        let (_, examples) = help.split_once("Examples:\n").unwrap_or_else(|| panic!("no examples in the help of {path:?}"));
        assert!(examples.lines().next().is_some_and(|line| line.contains("gleaner")), "{path:?}: {examples}");
        seen += 1;
        left.extend(subcommands(&help).into_iter().map(|name| [path.clone(), vec![name]].concat()));
    }
    assert!(seen >= 24, "only {seen} commands were found");
}

#[test]
fn wrong_usage_has_another_exit_code_than_failure() {
    let gleaner = Gleaner::at_home();
    assert_eq!(gleaner.run(&["items", "list"]).code, 2);
    assert_eq!(gleaner.run(&["items", "list", "jobs", "--state", "sleeping"]).code, 2);
    let failed = gleaner.run(&["items", "list", "jobs"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.starts_with("error: "), "{failed:?}");
}

#[test]
fn completions_know_the_commands() {
    let gleaner = Gleaner::at_home();
    for shell in ["bash", "zsh", "fish"] {
        assert!(gleaner.ok(&["completions", shell]).contains("enqueue"), "{shell}");
    }
}
