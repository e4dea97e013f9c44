//! `segue eval`: how good the answers of every target of a configuration are, with the day.

use super::environment::Environment;
use super::paint::{Ink, Paint};
use super::stop::Signals;
use super::{Failed, bench_continuity, log, probe, problems, results, scores, serve};
use crate::bench::continuity::judge::model::{EXAMPLES as JUDGED, Judge};
use crate::bench::continuity::suite::SEED;
use crate::bench::eval::suite::Suite;
use crate::bench::eval::{self, Eval, Evaluated};
use crate::bench::probe::{Subject, THINKING};
use crate::bench::table::{NONE, Table, percent};
use crate::config::lookup;
use crate::config::scores::Scores;
use crate::config::{Config, Loaded};
use crate::fleet;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::SystemTime;
use tokio_util::sync::CancellationToken;

/// Ask every target of every chain questions whose answers are known, and keep its score.
///
/// Not only the first of each chain: a fallback is heard when it is too late to find out how good it is. Each is given the
/// whole history of a conversation and asked for what was told in it; an answer is right if it holds what was expected,
/// or if the judge says so. Scores are kept with their day in a file beside the configuration, and `segue check` warns
/// where they are missing or old, or the model changed. What it costs is said first.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration; otherwise $SEGUE_CONFIG, ./segue.toml, the user's, /etc/segue/segue.toml, or the keys in the
    /// environment.
    #[arg(short, long, value_name = "FILE")]
    config: Option<String>,

    /// What is asked: `continuity`, `oblique`, or a file of your own questions (docs/evaluation.md).
    #[arg(long, value_name = "SUITE", default_value = "continuity")]
    suite: String,

    /// How many of its questions, of each kind as many; the same ones each time.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    sample: u32,

    /// All of its questions.
    #[arg(long, conflicts_with = "sample")]
    all: bool,

    /// Draws the questions.
    #[arg(long, value_name = "N", default_value_t = SEED)]
    seed: u64,

    /// Only targets of these connections.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    connection: Vec<String>,

    /// Only these targets.
    #[arg(long, value_name = "CONNECTION/MODEL", num_args = 1..)]
    target: Vec<String>,

    /// A model that judges the answers in which the expected words were not found (Chat Completions).
    #[arg(long, value_name = "URL", requires = "judge_model")]
    judge: Option<String>,

    /// The model to ask there.
    #[arg(long, value_name = "MODEL", requires = "judge")]
    judge_model: Option<String>,

    /// The environment variable that holds its key.
    #[arg(long, value_name = "NAME", requires = "judge")]
    judge_key_env: Option<String>,

    /// Targets that are asked at a time. The requests of one target always follow each other.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,

    /// The most tokens of an answer.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=4096))]
    max_tokens: u32,

    /// Where scores are kept [default: segue-scores.json beside the configuration].
    #[arg(long, value_name = "FILE")]
    scores: Option<String>,

    /// Write JSON.
    #[arg(long)]
    json: bool,
}

/// Evaluates, says how they did on standard output, and keeps it.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    log::start("warn")?;
    let given = args.config.as_deref();
    let location = lookup::locate(given, &Environment);
    let Loaded { mut config, warnings } = lookup::open(given, &Environment).map_err(Failed::Config)?;
    problems::write(&mut io::stderr(), Paint::of_stderr(), problems::WARNING, &warnings, &Environment)?;
    let file = scores::place(args.scores.as_deref(), &location);
    let known = scores::read(&file).map_err(|problem| Failed::Config(vec![problem]))?;
    let suite = suite(args)?;
    let subjects = chosen(&config, args)?;
    let judge = judge(args)?;
    let _built_in = serve::built_in(&mut config).await?;
    let max_tokens = args.max_tokens.into();
    let eval = Eval { suite, concurrency: args.concurrency.into(), max_tokens, judge };
    let place = location.to_string();
    writeln!(io::stderr(), "segue eval: {place}\n{}", cost(&eval, &subjects))?;
    if let Some(judge) = &eval.judge {
        judge.calibrate().await.map_err(Failed::Setup)?;
    }
    let signals = Signals::listen()?;
    let targets = measure(&eval, &config, &subjects, signals).await?;
    let report = Report { place, file, judge: args.judge_model.clone(), known, suite: eval.suite, targets };
    // First: what was paid for is kept even if nobody reads on.
    let kept = report.keep();
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{:#}", report.json())?;
    } else {
        report.write(&mut out, Paint::of_stdout())?;
    }
    out.flush()?;
    kept?;
    writeln!(io::stderr(), "kept in {}", report.file)?;
    Ok(ExitCode::from(report.code()))
}

// === what is asked, and of whom ===

fn suite(args: &Args) -> Result<Suite, Failed> {
    let suite = match args.suite.as_str() {
        "continuity" => Suite::continuity(),
        "oblique" => Suite::oblique(),
        path => {
            let wrong = |why: String| Failed::Setup(format!("--suite {path}: {why}"));
            let text = std::fs::read_to_string(path).map_err(|error| {
                wrong(format!("cannot be read ({error}); there are `continuity`, `oblique`, and files of your own"))
            })?;
            let name = std::path::Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
            Suite::read(&name, &text).map_err(wrong)?
        }
    };
    Ok(if args.all { suite } else { suite.sample(args.sample as usize, args.seed) })
}

fn chosen(config: &Config, args: &Args) -> Result<Vec<Subject>, Failed> {
    let mut subjects = probe::chosen(config, &args.connection)?;
    let name = |s: &Subject| format!("{}/{}", s.target.connection, s.target.model);
    if let Some(unknown) = args.target.iter().find(|target| !subjects.iter().any(|s| name(s) == **target)) {
        let known = subjects.iter().map(name).collect::<Vec<_>>().join(", ");
        return Err(Failed::Setup(format!("--target: no chain has {unknown}; there are {known}")));
    }
    subjects.retain(|s| args.target.is_empty() || args.target.contains(&name(s)));
    Ok(subjects)
}

fn judge(args: &Args) -> Result<Option<Judge>, Failed> {
    let (Some(url), Some(model)) = (&args.judge, &args.judge_model) else { return Ok(None) };
    let key = bench_continuity::key(args.judge_key_env.as_deref(), "--judge-key-env")?;
    Judge::new(url, model, key.as_deref()).map(Some).map_err(Failed::Setup)
}

async fn measure(
    eval: &Eval,
    config: &Config,
    subjects: &[Subject],
    mut signals: Signals,
) -> Result<Vec<Evaluated>, Failed> {
    let stop = CancellationToken::new();
    let bar = results::progress(eval.requests(subjects.len()));
    let tick = |count: usize| bar.inc(count as u64);
    let asking = eval::run(eval, config, subjects, &stop, &tick);
    tokio::pin!(asking);
    let done = tokio::select! {
        done = &mut asking => done,
        () = signals.told() => {
            stop.cancel();
            asking.await
        }
    };
    bar.finish_and_clear();
    done.map_err(Failed::Setup)
}

/// What it will cost, said before it does.
fn cost(eval: &Eval, subjects: &[Subject]) -> String {
    let requests = eval.requests(subjects.len());
    let thinking = if subjects.iter().any(|s| s.target.reasons) {
        format!(" ({THINKING} of each answer of a target that reasons are for that)")
    } else {
        String::new()
    };
    let judge = match &eval.judge {
        Some(_) => format!("; the judge is asked {} times, and up to {requests} more", JUDGED.len()),
        None => String::new(),
    };
    format!(
        "cost: {} target{}, {requests} requests ({} questions of {}): about {} tokens of prompts, at most {} of \
         answers{thinking}{judge}",
        subjects.len(),
        if subjects.len() == 1 { "" } else { "s" },
        eval.suite.cases.len(),
        eval.suite.name,
        eval.suite.tokens() * subjects.len() as u64,
        eval.generated(subjects),
    )
}

// === telling ===

/// All that there is to say.
struct Report {
    place: String,
    file: String,
    judge: Option<String>,
    /// The scores before this.
    known: Scores,
    suite: Suite,
    targets: Vec<Evaluated>,
}

impl Report {
    fn code(&self) -> u8 {
        u8::from(self.targets.iter().any(Evaluated::is_void))
    }

    /// Adds what was found to what is in the file by now.
    fn keep(&self) -> Result<(), Failed> {
        let mut scores = scores::read(&self.file).map_err(|problem| Failed::Config(vec![problem]))?;
        let at = fleet::view::rfc3339(SystemTime::now());
        for one in self.targets.iter().filter(|one| !one.interrupted) {
            scores.add(one.kept(&self.suite, self.judge.as_deref(), at.clone()));
        }
        scores::write(&self.file, &scores).map_err(|error| {
            let file = &self.file;
            Failed::Setup(format!("{file}: the scores cannot be kept: {error}; name another file with --scores"))
        })
    }

    fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let mut table =
            Table::new(["target", "levels", "answers", "right", "95 % interval", "before", "errors", "calls itself"]);
        for one in &self.targets {
            let (answers, right, interval) = one.score.map_or_else(
                || ("0".to_owned(), NONE.to_owned(), NONE.to_owned()),
                |s| (s.of.to_string(), percent(s.share), format!("{} to {}", percent(s.low), percent(s.high))),
            );
            table.row([
                one.name(),
                one.levels.join(", "),
                answers,
                right,
                interval,
                self.before(one).map_or_else(|| NONE.to_owned(), percent),
                one.failed().to_string(),
                one.said_model.clone().unwrap_or_else(|| NONE.to_owned()),
            ]);
        }
        writeln!(out, "{table}")?;
        for one in &self.targets {
            for line in remarks(one) {
                writeln!(out, "{}: {line}", paint.ink(Ink::Doubt, &one.name()))?;
            }
        }
        Ok(())
    }

    /// The score of the last time that it was asked the same.
    fn before(&self, one: &Evaluated) -> Option<f64> {
        let hash = self.suite.hash();
        self.known.of(&one.connection, &one.model).find(|score| score.hash == hash)?.score
    }

    fn json(&self) -> Value {
        json!({
            "config": self.place,
            "scores": self.file,
            "suite": {"name": self.suite.name, "hash": self.suite.hash(), "questions": self.suite.cases.len()},
            "judge": self.judge,
            "exit": self.code(),
            "targets": self.targets,
        })
    }
}

/// What the table does not say of a target.
fn remarks(one: &Evaluated) -> Vec<String> {
    let mut lines = Vec::new();
    if !one.missed.is_empty() {
        let shown: Vec<&str> = one.missed.iter().take(MOST_NAMES).map(String::as_str).collect();
        let more = if one.missed.len() > MOST_NAMES { ", …" } else { "" };
        lines.push(format!("wrong: {}{more}", shown.join(", ")));
        let weak = one.kinds.iter().filter(|(_, share)| share.hits < share.of);
        let weak: Vec<String> = weak.map(|(kind, s)| format!("{kind} {} of {}", s.hits, s.of)).collect();
        if !weak.is_empty() {
            lines.push(format!("right by kind: {}", weak.join(", ")));
        }
    }
    if one.empty > 0 {
        lines.push(format!(
            "{} answers had no text: a model that reasons needs `reasons = true`, or a larger --max-tokens",
            one.empty
        ));
    }
    if one.failed() > 0 || one.rate_limited > 0 || one.unjudged > 0 {
        let mut kinds: Vec<String> = one.errors.iter().map(|(kind, n)| format!("{n} × {kind}")).collect();
        if one.rate_limited > 0 {
            kinds.push(format!("{} rate limits, waited for", one.rate_limited));
        }
        if one.unjudged > 0 {
            kinds.push(format!("{} answers that the judge did not rule on", one.unjudged));
        }
        let said = one.said.as_deref().map(|words| format!(" (last: {words})")).unwrap_or_default();
        lines.push(format!("{}{said}", kinds.join(", ")));
    }
    if let Some(why) = &one.stopped {
        let lost = if one.interrupted { "; not kept" } else { "" };
        lines.push(format!("stopped early: {why}{lost}"));
    }
    lines
}

/// Questions that are named at most.
const MOST_NAMES: usize = 8;

const EXAMPLES: &str = "\
Examples:
  segue eval
  segue eval --config segue.toml --sample 10 --connection anthropic
  segue eval --suite oblique --all --target openai/gpt-5.6-luna
  segue eval --suite questions.json --judge https://api.openai.com/v1 --judge-model gpt-5.6-terra --judge-key-env OPENAI_API_KEY
  segue eval --json | jq '.targets[] | {connection, model, score}'

Exit codes:
  0  evaluated
  1  a target gave no answer, or fewer answers than errors
  2  the configuration, the suite, the file of scores or an argument is wrong, or the judge judges badly";
