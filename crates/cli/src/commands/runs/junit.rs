//! A run as a JUnit report, for build servers: a test case for each line of the data.

use std::time::Duration;

use anyhow::{Context as _, Result};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use serde_json::Value;

use super::list;
use crate::words::member;

/// `run` as [`super::show::read`] reads it.
pub(super) fn report(run: &Value) -> Result<String> {
    let name = member(run, "recording");
    let mut suite = TestSuite::new(&name);
    for row in run["rows"].as_array().into_iter().flatten() {
        let status =
            if row["status"] == "passed" { TestCaseStatus::success() } else { failure(NonSuccessKind::Failure, &member(row, "error")) };
        let mut case = TestCase::new(format!("row {}", row["row_number"]), status);
        case.set_classname(&name);
        case.set_time(Duration::from_millis(row["duration_ms"].as_u64().unwrap_or_default()));
        suite.add_test_case(case);
    }
    // A run that ended without its rows must not look like one that passed.
    if run["status"] != "completed" {
        let text = list::outcome(run).map_or_else(|| "the run has not ended".to_owned(), |outcome| outcome.text);
        let mut case = TestCase::new("run", failure(NonSuccessKind::Error, &text));
        case.set_classname(&name);
        suite.add_test_case(case);
    }
    let mut report = Report::new(format!("gleaner run {}", member(run, "id")));
    report.add_test_suite(suite);
    report.to_string().context("write the JUnit report")
}

fn failure(kind: NonSuccessKind, text: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_message(text);
    status
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_run_is_a_suite_and_each_line_a_test() -> Result<()> {
        let run = json!({"id": "7", "recording": "Order <form>", "status": "completed", "rows": [
            {"row_number": 1, "status": "passed", "duration_ms": 1200},
            {"row_number": 2, "status": "failed", "duration_ms": 800, "error": "step 4 (assert): \u{1b}[1m \"x\" ]]> is not there"}]});
        let report = report(&run)?;
        assert!(report.contains(r#"tests="2" skipped="0" failures="1" errors="0""#), "{report}");
        assert!(report.contains("Order &lt;form&gt;") && report.contains("row 2") && !report.contains('\u{1b}'), "{report}");
        Ok(())
    }

    #[test]
    fn a_run_that_did_not_end_is_an_error() -> Result<()> {
        let run = json!({"id": "7", "recording": "Order", "status": "cancelled", "rows": []});
        assert!(report(&run)?.contains(r#"errors="1""#));
        Ok(())
    }
}
