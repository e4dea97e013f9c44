//! `segue check`: what is wrong with a configuration, what is unwise, and what its chains come down to.

use super::Failed;
use super::environment::Environment;
use super::paint::{Ink, Paint};
use super::problems::{self, ERROR, NOTE, WARNING};
use super::scores;
use crate::config::check::{Finding, Severity, evaluations, findings};
use crate::config::lookup;
use crate::config::{Config, Loaded, Problem, draw, zero};
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::SystemTime;

/// Say what is wrong with a configuration, or unwise, and draw its chains.
///
/// Each chain is drawn down to vendor, cloud and region, and every single event is named that would take out two or
/// more of its targets. Fallbacks that `segue eval` never evaluated, or did more than 30 days ago, are named. Nothing is
/// asked over the network.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration; otherwise $SEGUE_CONFIG, ./segue.toml, the user's, /etc/segue/segue.toml, or the keys in the
    /// environment.
    #[arg(short, long, value_name = "FILE")]
    config: Option<String>,

    /// The same, without an option.
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<String>,

    /// The scores that `segue eval` kept [default: segue-scores.json beside the configuration].
    #[arg(long, value_name = "FILE")]
    scores: Option<String>,

    /// Warnings count: the exit code is 1 if there are any.
    #[arg(long)]
    strict: bool,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// What was found.
struct Verdict {
    place: String,
    /// `None`: it is wrong.
    config: Option<Config>,
    /// What is wrong with it, or with the scores.
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
    findings: Vec<Finding>,
}

/// Checks, and says what it found on standard output.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let verdict = Verdict::of(args.config.as_deref().or(args.file.as_deref()), args.scores.as_deref());
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", verdict.json(args.strict))?;
    } else {
        verdict.write(&mut out, Paint::of_stdout())?;
    }
    out.flush()?;
    Ok(ExitCode::from(verdict.code(args.strict)))
}

// === impl Verdict ===

impl Verdict {
    fn of(given: Option<&str>, scores: Option<&str>) -> Self {
        let location = lookup::locate(given, &Environment);
        let place = location.to_string();
        match lookup::open(given, &Environment) {
            Ok(Loaded { config, warnings }) => {
                let (mut findings, mut errors) = (findings(&config), Vec::new());
                match scores::read(&scores::place(scores, &location)) {
                    Ok(known) => {
                        let command = command(given, scores);
                        findings.extend(evaluations(&config, &known, &command, SystemTime::now()));
                    }
                    Err(problem) => errors.push(problem),
                }
                Self { place, config: Some(config), errors, warnings, findings }
            }
            Err(errors) => Self { place, config: None, errors, warnings: Vec::new(), findings: Vec::new() },
        }
    }

    fn code(&self, strict: bool) -> u8 {
        match (self.errors.is_empty(), strict && self.warned() > 0) {
            (false, _) => 2,
            (true, true) => 1,
            (true, false) => 0,
        }
    }

    fn warned(&self) -> usize {
        self.warnings.len() + self.of_severity(Severity::Warning)
    }

    fn of_severity(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }

    fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let Some(config) = &self.config else {
            problems::write(out, paint, ERROR, &self.errors, &Environment)?;
            return writeln!(out, "\n{}", paint.ink(Ink::Bad, &count(self.errors.len(), "error")));
        };
        writeln!(out, "{}{}\n", paint.ink(Ink::Bold, &self.place), self.dated())?;
        writeln!(out, "{}", draw::draw(config))?;
        problems::write(out, paint, WARNING, &self.warnings, &Environment)?;
        if !self.warnings.is_empty() {
            writeln!(out)?;
        }
        for Finding { severity, subject, message, remedy } in &self.findings {
            let severity = match severity {
                Severity::Warning => WARNING,
                Severity::Note => NOTE,
            };
            problems::say(out, paint, severity, subject, message, remedy)?;
        }
        if !self.findings.is_empty() {
            writeln!(out)?;
        }
        problems::write(out, paint, ERROR, &self.errors, &Environment)?;
        if !self.errors.is_empty() {
            writeln!(out)?;
        }
        let (warnings, notes) = (self.warned(), self.of_severity(Severity::Note));
        let ink = match (self.errors.is_empty(), warnings) {
            (false, _) => Ink::Bad,
            (true, 0) => Ink::Good,
            (true, _) => Ink::Doubt,
        };
        let mut verdict = if self.errors.is_empty() { "ok".to_owned() } else { count(self.errors.len(), "error") };
        if warnings > 0 {
            verdict = format!("{verdict}, {}", count(warnings, "warning"));
        }
        if notes > 0 {
            verdict = format!("{verdict}, {}", count(notes, "note"));
        }
        writeln!(out, "{}", paint.ink(ink, &verdict))
    }

    /// Models age: what nobody wrote is shown with its day.
    fn dated(&self) -> String {
        let day = zero::dated().filter(|_| self.place.starts_with("the keys"));
        day.map(|day| format!(", with the models of {day}")).unwrap_or_default()
    }

    fn json(&self, strict: bool) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|Finding { severity, subject, message, remedy }| {
                let severity = match severity {
                    Severity::Warning => "warning",
                    Severity::Note => "note",
                };
                json!({"severity": severity, "subject": subject, "message": message, "remedy": remedy})
            })
            .collect();
        json!({
            "config": self.place,
            "valid": self.config.is_some(),
            "exit": self.code(strict),
            "errors": self.errors.iter().map(problems::json).collect::<Vec<_>>(),
            "warnings": self.warnings.iter().map(problems::json).collect::<Vec<_>>(),
            "findings": findings,
            "levels": self.config.as_ref().map_or_else(Vec::new, levels),
        })
    }
}

// === helpers ===

fn levels(config: &Config) -> Vec<Value> {
    let row = |entry: &crate::routing::Entry| {
        let target = &entry.target;
        json!({
            "connection": target.connection,
            "model": target.model,
            "dialect": target.dialect.name(),
            "quality": target.quality,
            "domains": target.domains,
        })
    };
    let level = |level: &std::sync::Arc<crate::routing::Level>| json!({"level": level.name, "chain": level.chain.iter().map(row).collect::<Vec<_>>()});
    config.levels.iter().map(level).collect()
}

/// What evaluates the targets of this configuration.
fn command(config: Option<&str>, scores: Option<&str>) -> String {
    let named = [("--config", config), ("--scores", scores)];
    let named = named.into_iter().filter_map(|(flag, path)| Some(format!(" {flag} {}", path?)));
    format!("segue eval{}", named.collect::<String>())
}

fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

const EXAMPLES: &str = "\
Examples:
  segue check
  segue check --config config/production.toml --strict
  segue check --json | jq '.findings[].message'
  OPENAI_API_KEY=… ANTHROPIC_API_KEY=… segue check   what `segue serve` would do with these keys

Exit codes:
  0  the configuration can be used
  1  there are warnings, and --strict was given
  2  it is wrong, or there is none, or the file of scores is broken";
