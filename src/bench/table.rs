//! Tables for a terminal: columns as wide as they must be, numbers to the right.

use std::fmt;

/// A table. It is written with [`fmt::Display`].
#[derive(Clone, Debug, Default)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

// === impl Table ===

impl Table {
    /// A table with these columns.
    pub fn new<'a>(heads: impl IntoIterator<Item = &'a str>) -> Self {
        Self { heads: heads.into_iter().map(str::to_owned).collect(), rows: Vec::new() }
    }

    /// Adds a row; cells that are missing are empty, those too many are left out.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) -> &mut Self {
        let mut cells: Vec<String> = cells.into_iter().take(self.heads.len()).collect();
        cells.resize(self.heads.len(), String::new());
        self.rows.push(Row::Cells(cells));
        self
    }

    /// Adds a line across.
    pub fn rule(&mut self) -> &mut Self {
        self.rows.push(Row::Rule);
        self
    }

    /// The same as a table of Markdown; lines across are left out.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | ").replace('\n', " "));
        let mut text = line(&self.heads);
        text.push_str(&format!("|{}\n", " --- |".repeat(self.heads.len())));
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                text.push_str(&line(cells));
            }
        }
        text
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.heads.iter().map(|h| width(h)).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (most, cell) in widths.iter_mut().zip(cells) {
                    *most = (*most).max(width(cell));
                }
            }
        }
        widths
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let rule = |f: &mut fmt::Formatter<'_>| {
            let total = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
            writeln!(f, "{}", "-".repeat(total))
        };
        line(f, &self.heads, &widths)?;
        rule(f)?;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => line(f, cells, &widths)?,
                Row::Rule => rule(f)?,
            }
        }
        Ok(())
    }
}

// === helpers ===

fn line(f: &mut fmt::Formatter<'_>, cells: &[String], widths: &[usize]) -> fmt::Result {
    let mut text = String::new();
    for (index, (cell, most)) in cells.iter().zip(widths).enumerate() {
        let pad = " ".repeat(most - width(cell));
        if index > 0 {
            text.push_str(&" ".repeat(GAP));
        }
        let right = index > 0 && cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '<' | '–'));
        if right {
            text.push_str(&pad);
            text.push_str(cell);
        } else {
            text.push_str(cell);
            text.push_str(&pad);
        }
    }
    writeln!(f, "{}", text.trim_end())
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// Milliseconds, with a decimal where that says something.
pub fn millis(ms: f64) -> String {
    if ms.abs() < 9.95 { format!("{ms:.1}") } else { format!("{ms:.0}") }
}

/// A share as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A number in these words, or a dash where there is none.
pub fn or_none(number: Option<f64>, words: impl FnOnce(f64) -> String) -> String {
    number.map_or_else(|| NONE.to_owned(), words)
}

/// What there is nothing of.
pub const NONE: &str = "–";

/// Blanks between columns.
const GAP: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new(["policy", "p50", "note"]);
        table.row(["sequential".into(), millis(1234.5), "a".into()]);
        table.rule().row(["hedged".into(), millis(7.25)]);
        let text = table.to_string();
        let want = "\
policy      p50   note
----------------------
sequential  1234  a
----------------------
hedged       7.2
";
        assert_eq!(text, want);
        let want = "\
| policy | p50 | note |
| --- | --- | --- |
| sequential | 1234 | a |
| hedged | 7.2 |  |
";
        assert_eq!(table.markdown(), want);
    }

    #[test]
    fn shares_and_times_are_short() {
        assert_eq!(percent(0.0951), "9.5 %");
        assert_eq!((millis(0.04), millis(9.96), millis(-3.0)), ("0.0".into(), "10".into(), "-3.0".into()));
    }
}
