//! A report for people: a paragraph, then tables; as text, Markdown or a page of its own.

use super::{Count, Percentiles, Report};
use crate::record::circuit::rfc3339;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime};

/// A table under a heading.
struct Table {
    title: &'static str,
    head: &'static [&'static str],
    rows: Vec<Vec<String>>,
}

// === impl Report ===

impl Report {
    /// What happened, in a paragraph.
    pub fn paragraph(&self) -> String {
        let (from, to) = (moment(self.from), moment(self.to));
        let between = match (from.split_once('T'), to.split_once('T')) {
            (Some((day, from)), Some((other, to))) if day == other => {
                format!("On {day} between {} and {} UTC", &from[..5], &to[..5])
            }
            _ => format!("Between {from} and {to}"),
        };
        let of = |what: &str| match (&self.tenant, &self.level) {
            (None, None) => what.to_owned(),
            (Some(tenant), None) => format!("{tenant}'s {what}"),
            (None, Some(level)) => format!("{what} of the level {level}"),
            (Some(tenant), Some(level)) => format!("{tenant}'s {what} of the level {level}"),
        };
        if self.turns == 0 {
            return format!("{between} there were no {}.", of("turns"));
        }
        let mut text = format!(
            "{between} Segue served {} of {} ({} of {}) from a target that was not the first choice, spliced {} in \
             mid-turn, and {} of {} turns failed ({}).",
            percent(self.conversations_secondary, self.conversations),
            of("conversations"),
            self.conversations_secondary,
            self.conversations,
            self.spliced,
            self.failed,
            self.turns,
            percent(self.failed, self.turns),
        );
        if let (Some(p50), Some(p95)) = (self.first_told.p50, self.first_told.p95) {
            let _ = write!(
                text,
                " The first word came after {} (median), and after {} in the slowest twentieth.",
                ms(p50),
                ms(p95)
            );
        }
        if let Some(p95) = self.splice_gap.p95 {
            let _ = write!(text, " Nineteen splices in twenty left their reader in silence for {} at most.", ms(p95));
        }
        if self.below_quality > 0 {
            let _ = write!(
                text,
                " {} turns ({}) were served below the best quality of their level.",
                self.below_quality,
                percent(self.below_quality, self.turns)
            );
        }
        let extra = || self.spent.iter().filter(|spent| spent.spent_as != "leader");
        let (tokens, cost): (u64, f64) = (extra().map(|s| s.tokens).sum(), extra().map(|s| s.cost).sum());
        if tokens > 0 {
            let _ = write!(text, " Failover and racing cost {tokens} extra tokens ({}).", dollars(cost));
        }
        text
    }

    /// As plain text.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.paragraph());
        for table in self.tables() {
            let _ = write!(text, "\n{}\n", table.title);
            let widths: Vec<usize> = (0..table.head.len())
                .map(|at| {
                    let cells = table.rows.iter().map(|row| row[at].chars().count());
                    cells.chain([table.head[at].len()]).max().unwrap_or_default()
                })
                .collect();
            let head: Vec<String> = table.head.iter().map(|cell| (*cell).to_owned()).collect();
            for row in std::iter::once(&head).chain(&table.rows) {
                let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| {
                    if at == 0 { format!("{cell:width$}") } else { format!("{cell:>width$}") }
                });
                let _ = writeln!(text, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
            }
        }
        text
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# Segue: report\n\n{}\n", self.paragraph());
        for table in self.tables() {
            let rule: String = table.head.iter().map(|_| " --- |").collect();
            let _ = write!(text, "\n## {}\n\n| {} |\n|{rule}\n", table.title, table.head.join(" | "));
            for row in &table.rows {
                let cells: Vec<String> =
                    row.iter().map(|cell| cell.replace('|', "\\|").replace(['\n', '\r'], " ")).collect();
                let _ = writeln!(text, "| {} |", cells.join(" | "));
            }
        }
        text
    }

    /// As a page that needs nothing else.
    pub fn html(&self) -> String {
        let mut text = format!("{HEAD}<h1>Report</h1><p>{}</p>{}", escape(&self.paragraph()), self.plot());
        for table in self.tables() {
            let head: String = table.head.iter().map(|cell| format!("<th>{}</th>", escape(cell))).collect();
            let _ = write!(text, "<h2>{}</h2><div><table><tr>{head}</tr>", table.title);
            for row in &table.rows {
                let cells: String = row.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
                let _ = write!(text, "<tr>{cells}</tr>");
            }
            text.push_str("</table></div>");
        }
        text.push_str("</main></html>\n");
        text
    }

    /// Turns over time: all, those that another than the first choice served, those that failed.
    fn plot(&self) -> String {
        let most = self.windows.iter().map(|window| window.turns).max().unwrap_or_default().max(1) as f64;
        let step = 960.0 / self.windows.len().max(1) as f64;
        let mut bars = String::new();
        for (index, window) in self.windows.iter().enumerate() {
            for (class, count) in [("all", window.turns), ("other", window.secondary), ("bad", window.failed)] {
                let height = 160.0 * count as f64 / most;
                let (x, y) = (20.0 + index as f64 * step, 180.0 - height);
                let _ = write!(
                    bars,
                    "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{height:.1}\"><title>{}: {} turns, {} by another, {} failed</title></rect>",
                    (step - 1.0).max(0.5),
                    moment(window.from),
                    window.turns,
                    window.secondary,
                    window.failed
                );
            }
        }
        format!(
            "<svg viewBox=\"0 0 1000 200\" role=\"img\" aria-label=\"Turns over time\">{bars}<text x=\"20\" y=\"196\">{}</text>\
             <text x=\"980\" y=\"196\" text-anchor=\"end\">{}</text></svg>\
             <p class=\"key\"><b class=\"all\">■</b> turns <b class=\"other\">■</b> served by another than the first choice \
             <b class=\"bad\">■</b> failed</p>",
            moment(self.from),
            moment(self.to)
        )
    }

    fn tables(&self) -> Vec<Table> {
        let counts = |rows: &[Count]| -> Vec<Vec<String>> {
            let rows = rows.iter().take(SHOWN);
            rows.map(|row| row.what.iter().cloned().chain([row.count.to_string()]).collect()).collect()
        };
        let all = |title, times: Percentiles| {
            let cells = [times.p50, times.p95, times.p99].map(|time| time.map_or_else(dash, ms));
            [vec![title, times.count.to_string()], cells.to_vec()].concat()
        };
        let windows = self.windows.iter().filter(|window| window.turns > 0).map(|w| {
            vec![
                moment(w.from),
                w.turns.to_string(),
                percent(w.failed, w.turns),
                percent(w.secondary, w.turns),
                w.spliced.to_string(),
                w.first_told_p95.map_or_else(dash, ms),
            ]
        });
        let targets = self.targets.iter().take(SHOWN).map(|t| {
            vec![
                t.target.clone(),
                t.attempts.to_string(),
                t.failed.to_string(),
                t.error_rate.map_or_else(dash, |rate| format!("{:.1} %", rate * 100.0)),
                t.first_token.p50.map_or_else(dash, ms),
                t.first_token.p95.map_or_else(dash, ms),
                t.tokens.to_string(),
                t.cost.map_or_else(dash, dollars),
            ]
        });
        let circuits = self.circuits.iter().take(SHOWN).map(|c| {
            let [closed, open, half] = [c.closed, c.open, c.half_open].map(|time| format!("{time:.0} s"));
            vec![c.target.clone(), closed, open, half, c.trips.to_string()]
        });
        let spent = self.spent.iter().take(SHOWN).map(|s| {
            let cost = if s.unpriced > 0 && s.cost == 0.0 { dash() } else { dollars(s.cost) };
            vec![named(&s.tenant), s.spent_as.clone(), s.tokens.to_string(), cost, s.unpriced.to_string()]
        });
        let served = counts(&self.served).into_iter().map(|mut row| {
            row[0] = named(&row[0]);
            row
        });
        let tables = vec![
            Table {
                title: "Times",
                head: &["what", "count", "p50", "p95", "p99"],
                rows: vec![
                    all("first word".to_owned(), self.first_told),
                    all("longest silence".to_owned(), self.longest_silence),
                    all("gap at splices".to_owned(), self.splice_gap),
                ],
            },
            Table {
                title: "Over time",
                head: &["from", "turns", "failed", "by another", "spliced", "first word p95"],
                rows: windows.collect(),
            },
            Table {
                title: "Targets",
                head: &["target", "attempts", "failed", "error rate", "first token p50", "p95", "tokens", "cost"],
                rows: targets.collect(),
            },
            Table {
                title: "Circuits",
                head: &["target", "closed", "open", "half-open", "trips"],
                rows: circuits.collect(),
            },
            Table { title: "Failures", head: &["target", "kind", "count"], rows: counts(&self.failures) },
            Table { title: "Attempts by cause", head: &["cause", "count"], rows: counts(&self.causes) },
            Table { title: "Seams", head: &["decided by", "count"], rows: counts(&self.seams) },
            Table {
                title: "Who was served by what",
                head: &["tenant", "level", "target", "turns"],
                rows: served.collect(),
            },
            Table {
                title: "Spent",
                head: &["tenant", "for", "tokens", "cost", "tokens without a price"],
                rows: spent.collect(),
            },
        ];
        tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
    }
}

// === helpers ===

fn moment(seconds: f64) -> String {
    // Beyond the range of a calendar nobody asks for a report.
    let since = Duration::try_from_secs_f64(seconds.floor().clamp(0.0, 2.5e11)).unwrap_or_default();
    rfc3339(SystemTime::UNIX_EPOCH + since)
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 })
}

fn ms(ms: f64) -> String {
    if ms < 10_000.0 { format!("{ms:.0} ms") } else { format!("{:.1} s", ms / 1e3) }
}

fn dollars(cost: f64) -> String {
    if cost == 0.0 || cost >= 0.01 { format!("${cost:.2}") } else { format!("${cost:.6}") }
}

fn dash() -> String {
    "–".to_owned()
}

fn named(tenant: &str) -> String {
    if tenant.is_empty() { dash() } else { tenant.to_owned() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// So many rows of a table are shown; JSON holds all.
const SHOWN: usize = 50;

const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
content=\"width=device-width\"><title>Segue: report</title><style>\
:root{color-scheme:light dark;--ink:#1c1c1e;--paper:#fff;--line:#d8d8dc;--all:#b9c4d0;--other:#d9822b;--bad:#c23030}\
@media(prefers-color-scheme:dark){:root{--ink:#e8e8ea;--paper:#16171a;--line:#3a3c42;--all:#47525e}}\
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
main{max-width:64rem;margin:auto;padding:1.5rem}div{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem}\
th,td{padding:.25rem .75rem .25rem 0;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}\
th:first-child,td:first-child{text-align:left}svg{width:100%;height:auto}text{fill:var(--ink);font-size:12px}\
rect.all{fill:var(--all)}rect.other{fill:var(--other)}rect.bad{fill:var(--bad)}b.all{color:var(--all)}\
b.other{color:var(--other)}b.bad{color:var(--bad)}</style><main>";
