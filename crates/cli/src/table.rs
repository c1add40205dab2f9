//! Aligned columns, cut to the width of the terminal.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::{DIM, PLAIN, paint};

const GAP: &str = "  ";
/// A column is never cut below this width, even on a narrow terminal.
const NARROWEST: usize = 8;

#[derive(Debug, Clone)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: PLAIN }
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self { text: text.into(), style }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Columns whose title starts with `>` are aligned to the right. Columns without any content are left out.
#[derive(Debug)]
pub(crate) struct Table {
    titles: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        Self { titles: titles.to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table as text, for the current terminal.
    pub(crate) fn text(&self) -> String {
        self.within(terminal_width())
    }

    fn within(&self, room: Option<usize>) -> String {
        let shown: Vec<usize> = (0..self.titles.len()).filter(|&c| self.rows.iter().any(|row| !row[c].text.is_empty())).collect();
        let mut widths: Vec<usize> = shown
            .iter()
            .map(|&c| self.rows.iter().map(|row| row[c].text.width()).chain([self.title(c).width()]).max().unwrap_or(0))
            .collect();
        if let Some(room) = room {
            // The widest column is cut first.
            while widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1) > room {
                let Some(widest) = widths.iter_mut().max().filter(|w| **w > NARROWEST) else { break };
                *widest -= 1;
            }
        }
        let mut lines = vec![self.line(&shown, &widths, |c| Cell::styled(self.title(c), DIM))];
        lines.extend(self.rows.iter().map(|row| self.line(&shown, &widths, |c| row[c].clone())));
        lines.join("\n")
    }

    fn title(&self, column: usize) -> &'static str {
        self.titles[column].trim_start_matches('>')
    }

    fn line(&self, shown: &[usize], widths: &[usize], cell: impl Fn(usize) -> Cell) -> String {
        let last = shown.len().saturating_sub(1);
        let parts = shown.iter().zip(widths).enumerate().map(|(i, (&column, &width))| {
            let Cell { text, style } = cell(column);
            let text = cut(&text, width);
            let space = " ".repeat(width - text.width());
            match (self.titles[column].starts_with('>'), i == last) {
                (true, _) => space + &paint(style, text),
                // The last column needs no padding.
                (false, true) => paint(style, text),
                (false, false) => paint(style, text) + &space,
            }
        });
        parts.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    }
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width.saturating_sub(1) {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// `None` when the output is not a terminal: a file or a pipe gets everything.
fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(table: &Table, room: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.within(room)).to_string()
    }

    #[test]
    fn columns_align_and_empty_ones_are_left_out() {
        let mut table = Table::new(&["ID", ">N", "OWNER", "DETAIL"]);
        table.row(vec!["1".into(), "5".into(), "".into(), "short".into()]);
        table.row(vec!["22".into(), "1000".into(), "".into(), "日本".into()]);
        assert_eq!(plain(&table, None), "ID     N  DETAIL\n1      5  short\n22  1000  日本");
    }

    #[test]
    fn the_widest_column_gives_way_to_the_terminal() {
        let mut table = Table::new(&["ID", "DETAIL"]);
        table.row(vec!["1".into(), "a text much longer than the terminal is wide".into()]);
        assert_eq!(plain(&table, Some(20)), "ID  DETAIL\n1   a text much lon…");
    }
}
