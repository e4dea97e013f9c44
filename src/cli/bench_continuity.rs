//! `segue bench continuity`: what of a conversation is left after its provider failed, with any gateway.

mod played;
mod subject;

use super::Failed;
use super::results::{progress, say, write};
use crate::bench::continuity::judge::model::Judge;
use crate::bench::continuity::manifest::{Manifest, Shape};
use crate::bench::continuity::report::{self, Report, Setup, Trial};
use crate::bench::continuity::score;
use crate::bench::continuity::suite::{self, Conversation};
use crate::bench::continuity::systems::System;
use crate::bench::continuity::{judge, record::Record};
use crate::bench::machine::Machine;
use crate::rig::mark::Mark;
use crate::rig::span;
use clap::{ArgGroup, ValueEnum};
use played::Played;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use subject::Subject;

/// What to play, with whom, and what to write.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("subject").args(["url", "config"]))]
pub(super) struct Arguments {
    /// Determines what fails when.
    #[arg(long, value_name = "S", default_value_t = suite::SEED)]
    seed: u64,
    /// How often each conversation is played.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Conversations at a time.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=5000))]
    concurrency: u16,
    /// The systems to measure [default: all].
    #[arg(long, value_name = "SYSTEM", value_delimiter = ',', conflicts_with = "url")]
    systems: Vec<Named>,
    /// The kinds of failure [default: all; with --manifest its own].
    #[arg(long, value_name = "SHAPE", value_delimiter = ',')]
    shapes: Vec<Kind>,
    /// Play these conversations (JSON, in the format of the public benchmark) instead of the program's own.
    #[arg(long, value_name = "FILE")]
    conversations: Option<PathBuf>,
    /// Only the first N conversations.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    first: Option<u32>,
    /// The program's conversations with probes that refer back without naming what they refer to.
    #[arg(long, conflicts_with = "conversations")]
    oblique: bool,
    /// What fails, instead of what the seed gives.
    #[arg(long, value_name = "FILE", conflicts_with = "shapes")]
    manifest: Option<PathBuf>,
    /// Write the manifest of the seed and the (first) shape to this file, and play nothing.
    #[arg(long, value_name = "FILE", conflicts_with = "manifest")]
    draw: Option<PathBuf>,
    /// Write the report to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Draw the report into this directory, as SVG.
    #[arg(long, value_name = "DIR")]
    plots: Option<PathBuf>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write every answer as it was heard, one conversation a line.
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// Write a sample of answers for people to judge, one a line.
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    /// A model that judges the answers in which the fact was not found (Chat Completions).
    #[arg(long, value_name = "URL", requires = "judge_model")]
    judge: Option<String>,
    /// The model to ask there.
    #[arg(long, value_name = "MODEL", requires = "judge")]
    judge_model: Option<String>,
    /// The environment variable that holds its key.
    #[arg(long, value_name = "NAME", requires = "judge")]
    judge_key_env: Option<String>,
    /// Compare two JSON reports, and play nothing.
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"])]
    compare: Option<Vec<PathBuf>>,
    /// Real providers: those of a level of this configuration, in this process, with the failures injected.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
    /// The level of --config [default: the first].
    #[arg(long, value_name = "NAME", requires = "config")]
    level: Option<String>,
    /// Another gateway (Chat Completions), before the built-in providers.
    #[arg(long, value_name = "URL", requires = "model")]
    url: Option<String>,
    /// The model to ask it for.
    #[arg(long, value_name = "MODEL", requires = "url")]
    model: Option<String>,
    /// The environment variable that holds its key.
    #[arg(long, value_name = "NAME", requires = "url")]
    key_env: Option<String>,
    /// What the other gateway is called in the report.
    #[arg(long, value_name = "NAME", requires = "url", default_value = "other")]
    name: String,
    /// Where the first built-in provider listens; the others follow port by port.
    #[arg(long, value_name = "ADDR", requires = "url", default_value = "127.0.0.1:9101")]
    providers_at: SocketAddr,
    /// Where configurations for the other gateway are written: litellm.yaml and segue.toml.
    #[arg(long, value_name = "DIR", requires = "url", default_value = ".")]
    files: PathBuf,
    /// How long the other gateway is waited for.
    #[arg(long, value_name = "TIME", requires = "url", default_value = "2m", value_parser = span::parse)]
    wait: Duration,
    /// How often a client asks again after an error.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(0..=100))]
    client_retries: u32,
    /// How long a client, or the other gateway, leaves a provider alone that failed.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = span::parse)]
    cooldown: Duration,
    /// The limits of the gateways on first word and silence.
    #[arg(long, value_name = "TIME", default_value = "750ms", value_parser = span::parse)]
    clock: Duration,
    /// The time between two words of the built-in providers.
    #[arg(long, value_name = "TIME", default_value = "2ms", value_parser = span::parse)]
    word: Duration,
    /// A client gives a try up after so long without a word.
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = span::parse)]
    client_timeout: Duration,
}

/// Systems by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Named {
    Stateless,
    History,
    Splice,
}

/// Shapes by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
enum Kind {
    Turn,
    #[value(alias = "mid-turn")]
    MidTurn,
    Rolling,
    Repeated,
}

/// Runs the benchmark.
pub(super) async fn run(arguments: &Arguments) -> Result<ExitCode, Failed> {
    if let Some(files) = &arguments.compare {
        let [a, b] = [0, 1].map(|index| files.get(index).map_or_else(PathBuf::new, Clone::clone));
        say(&report::compare(&read(&a, "--compare")?, &read(&b, "--compare")?).map_err(Failed::Setup)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let suite = conversations(arguments)?;
    let subject = Subject::choose(arguments, &suite).await?;
    let manifests = manifests(arguments, &suite, &subject.names())?;
    if let (Some(path), Some(manifest)) = (&arguments.draw, manifests.first()) {
        write(path, &manifest.write())?;
        say(&format!("written: {}", path.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let judge = calibrated(arguments).await?;
    let systems = subject.systems();
    say(&format!(
        "segue bench continuity: {} conversations, {}, {} at a time, seed {}\n{}\n{}\n",
        suite.len(),
        match arguments.runs {
            1 => "1 run".to_owned(),
            runs => format!("{runs} runs"),
        },
        arguments.concurrency,
        arguments.seed,
        subject.words(),
        Machine::this()
    ))?;
    subject.ready(arguments).await?;
    let bar = progress((manifests.len() + 1) * systems.len() * suite.len() * arguments.runs as usize);
    let mut all: Vec<Played> = Vec::new();
    for system in &systems {
        for manifest in std::iter::once(None).chain(manifests.iter().map(Some)) {
            let records = subject.play(arguments, system, manifest, &suite, || bar.inc(1)).await?;
            all.push(Played { shape: manifest.map(|manifest| manifest.shape), records });
        }
    }
    bar.finish_and_clear();
    let setup = Setup {
        suite: name_of(arguments),
        conversations: suite.len(),
        seed: arguments.seed,
        runs: arguments.runs,
        concurrency: usize::from(arguments.concurrency),
        client_retries: arguments.client_retries,
        cooldown_ms: u64::try_from(arguments.cooldown.as_millis()).unwrap_or(u64::MAX),
        providers: subject.names(),
    };
    let mut report = Report { setup, trials: Vec::new(), machine: Machine::this() };
    let baseline: Vec<Record> = played::of(&all, None);
    let mut sample = String::new();
    for manifest in &manifests {
        let records = played::of(&all, Some(manifest.shape));
        let mut verdicts = judge::verdicts(&suite, &records);
        let judged = match &judge {
            Some(judge) => {
                Some(judge.review(&suite, &records, &mut verdicts, arguments.seed).await.map_err(Failed::Setup)?)
            }
            None => None,
        };
        sample += &judge::audit(&suite, &records, &verdicts, AUDITED, arguments.seed);
        let score = score::score(&records, &baseline, &verdicts);
        report.trials.push(Trial { shape: manifest.shape, score, judged, notes: played::notes(&records) });
    }
    say(&report::text(&report))?;
    files(arguments, &report, &all, &sample)?;
    let broken = if arguments.config.is_none() { played::broken_promises(&report) } else { Vec::new() };
    for promise in &broken {
        say(promise)?;
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

// === reading ===

fn conversations(arguments: &Arguments) -> Result<Arc<[Conversation]>, Failed> {
    let mut suite = match &arguments.conversations {
        Some(path) => {
            let text = read(path, "--conversations")?;
            suite::read(&text).map_err(|why| Failed::Setup(format!("--conversations {}: {why}", path.display())))?
        }
        None if arguments.oblique => suite::oblique(),
        None => suite::committed(),
    };
    suite.truncate(arguments.first.map_or(usize::MAX, |first| first as usize));
    if let Some(odd) = suite.iter().find(|c| !Mark::can_hold(&c.id)) {
        return Err(Failed::Setup(format!(
            "--conversations: the id `{}` has brackets; conversations are known by a mark in brackets",
            odd.id
        )));
    }
    Ok(suite.into())
}

fn name_of(arguments: &Arguments) -> String {
    match &arguments.conversations {
        Some(path) => path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        None if arguments.oblique => format!("continuity-oblique-v{}", suite::VERSION),
        None => format!("continuity-v{}", suite::VERSION),
    }
}

fn manifests(
    arguments: &Arguments,
    suite: &[Conversation],
    providers: &[String],
) -> Result<Vec<Arc<Manifest>>, Failed> {
    if let Some(path) = &arguments.manifest {
        let wrong = |why: String| Failed::Setup(format!("--manifest {}: {why}", path.display()));
        let manifest = Manifest::read(&read(path, "--manifest")?).map_err(wrong)?;
        manifest.fits(suite, providers).map_err(wrong)?;
        return Ok(vec![Arc::new(manifest)]);
    }
    let chosen: Vec<Shape> = match arguments.shapes.as_slice() {
        [] => Shape::ALL.to_vec(),
        some => some.iter().map(|kind| kind.shape()).collect(),
    };
    let mut manifests = Vec::new();
    for shape in Shape::ALL.into_iter().filter(|shape| chosen.contains(shape)) {
        match Manifest::draw(shape, arguments.seed, suite, providers) {
            Ok(manifest) => manifests.push(Arc::new(manifest)),
            // A short chain cannot have them; whoever asked for them by name is told.
            Err(_) if arguments.shapes.is_empty() && !manifests.is_empty() => {}
            Err(why) => return Err(Failed::Setup(why)),
        }
    }
    Ok(manifests)
}

/// The judge, after it has shown that it judges as people do.
async fn calibrated(arguments: &Arguments) -> Result<Option<Judge>, Failed> {
    let (Some(url), Some(model)) = (&arguments.judge, &arguments.judge_model) else { return Ok(None) };
    let key = key(arguments.judge_key_env.as_deref(), "--judge-key-env")?;
    let judge = Judge::new(url, model, key.as_deref()).map_err(Failed::Setup)?;
    judge.calibrate().await.map_err(Failed::Setup)?;
    Ok(Some(judge))
}

/// What the environment holds under this name.
pub(super) fn key(name: Option<&str>, flag: &str) -> Result<Option<String>, Failed> {
    let Some(name) = name else { return Ok(None) };
    let value = std::env::var(name).map_err(|_| Failed::Setup(format!("{flag}: the variable {name} is not set")))?;
    Ok(Some(value))
}

fn read(path: &Path, flag: &str) -> Result<String, Failed> {
    std::fs::read_to_string(path).map_err(|error| Failed::Setup(format!("{flag} {}: {error}", path.display())))
}

// === writing ===

fn files(arguments: &Arguments, report: &Report, all: &[Played], sample: &str) -> Result<(), Failed> {
    let texts = [
        (&arguments.json, report::json(report)),
        (&arguments.markdown, report::markdown(report)),
        (&arguments.audit, sample.to_owned()),
        (&arguments.records, played::lines(all)),
    ];
    for (path, text) in texts {
        if let Some(path) = path {
            write(path, &text)?;
            say(&format!("written: {}", path.display()))?;
        }
    }
    if let Some(directory) = &arguments.plots {
        let plots = report::plots(report).map_err(|why| Failed::Setup(why.to_string()))?;
        std::fs::create_dir_all(directory)
            .map_err(|error| Failed::Setup(format!("--plots {}: {error}", directory.display())))?;
        for (name, svg) in &plots {
            write(&directory.join(name), svg)?;
        }
        say(&format!("drawn: {} plots in {}", plots.len(), directory.display()))?;
    }
    Ok(())
}

// === impl Named, Kind ===

impl Named {
    fn system(self) -> System {
        match self {
            Self::Stateless => System::Stateless,
            Self::History => System::History,
            Self::Splice => System::Splice,
        }
    }
}

impl Kind {
    fn shape(self) -> Shape {
        match self {
            Self::Turn => Shape::Turn,
            Self::MidTurn => Shape::MidTurn,
            Self::Rolling => Shape::Rolling,
            Self::Repeated => Shape::Repeated,
        }
    }
}

/// Answers of each shape that are written out for people to judge.
const AUDITED: usize = 50;

pub(super) const EXAMPLES: &str = "\
Examples:
  segue bench continuity
  segue bench continuity --json run.json --markdown run.md --plots plots/
  segue bench continuity --runs 1 --systems history,splice --shapes mid_turn,rolling
  segue bench continuity --url http://127.0.0.1:4000 --model amber --name litellm
  segue bench continuity --config segue.toml --level normal --runs 1 --concurrency 4
  segue bench continuity --shapes mid_turn --draw manifest.json
  segue bench continuity --compare before.json after.json

Exit codes:
  0  measured
  1  splice was not whole on the built-in providers, or the reader of the output left
  2  the arguments are wrong, or something could not be set up";
