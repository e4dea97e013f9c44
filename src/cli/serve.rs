//! `segue serve`: the gateway, until it is told to stop.

use super::control::Control;
use super::environment::Environment;
use super::log;
use super::outlet::Format;
use super::paint::{Ink, Paint};
use super::stop::Signals;
use super::{Failed, descriptors, memory, problems, reload, report};
use crate::bench::continuity::inject;
use crate::bench::continuity::manifest::Manifest;
use crate::config::lookup::{self, Location};
use crate::config::prices::Prices;
use crate::config::{Config, Loaded, Resolver};
use crate::gateway::Gateway;
use crate::ledger::{Ledger, Settings};
use crate::rig::faults::Faults;
use crate::rig::mock;
use crate::rig::origin::Origin;
use crate::routing::Level;
use crate::server::listen::{self, Manners};
use crate::words::escape::plain;
use crate::{admin, server};
use std::future::Future;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Run the gateway.
///
/// Without a configuration it serves the providers whose keys are in the environment (OPENAI_API_KEY,
/// ANTHROPIC_API_KEY, GEMINI_API_KEY, MISTRAL_API_KEY, DEEPSEEK_API_KEY, GROQ_API_KEY, OPENROUTER_API_KEY, and
/// OLLAMA_HOST), the first four of them as one chain, under the levels `normal`, `high`, `low` and `voice`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The configuration; otherwise $SEGUE_CONFIG, ./segue.toml, the user's, /etc/segue/segue.toml, or the keys in the
    /// environment.
    #[arg(short, long, value_name = "FILE")]
    config: Option<String>,

    /// Where clients connect, instead of $SEGUE_LISTEN or `server.listen`; port 0 takes any free one.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,

    /// Where operators connect, instead of $SEGUE_ADMIN or `admin.listen`.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    admin: Option<SocketAddr>,

    /// Break the answers of marked conversations as this manifest of `segue bench continuity` says. For benchmarks only.
    #[arg(long, value_name = "MANIFEST")]
    faults: Option<PathBuf>,
}

/// Runs the gateway.
pub(super) async fn run(args: &Args) -> Result<ExitCode, Failed> {
    let format = log::start("info")?;
    let given = args.config.as_deref();
    let location = lookup::locate(given, &Environment);
    let Loaded { mut config, warnings } = lookup::open(given, &Environment).map_err(Failed::Config)?;
    let asked = Asked::of(args, &Environment)?;
    direct(&mut config, &asked)?;
    match format {
        Format::Json => {
            warnings.iter().for_each(|warning| tracing::warn!("{}", reload::one_line(&warning.to_string())))
        }
        Format::Text => {
            let severity = problems::WARNING;
            told(problems::write(&mut io::stderr(), Paint::of_stderr(), severity, &warnings, &Environment));
        }
    }
    let _built_in = built_in(&mut config).await?;
    if descriptors::bound(&mut config.server) {
        let most = config.server.max_turns;
        tracing::info!(most, "open turns are bounded by the file descriptors of this process; `ulimit -n` raises them");
    }
    let configured = (config.server.listen, config.admin.listen);
    let clients = bind(config.server.listen, "server.listen").await?;
    // Operators are answered, and signals obeyed, even if every worker is busy.
    let control = Control::start()?;
    let operators = control.run(bind(config.admin.listen, "admin.listen")).await??;
    config.server.listen = clients.local_addr()?;
    config.admin.listen = operators.local_addr()?;
    let (signals, hangup) = {
        let _inside = control.enter();
        (Signals::listen()?, reload::listen()?)
    };
    let settled = reload::Settled {
        given: args.config.clone(),
        clients: (configured.0, config.server.listen),
        operators: (configured.1, config.admin.listen),
        asked: (asked.listen, asked.admin),
    };
    let ledger = report::path(&config, &location).map(|path| Settings {
        path,
        keep: config.ledger.keep,
        bodies: config.ledger.bodies,
        prices: Prices::of(&config.ledger),
    });
    let gateway = match &args.faults {
        None => Gateway::new(config),
        Some(path) => {
            let faults = faults(path)?;
            Gateway::decorated(config, move |name, upstream| faults.around(name, upstream))
        }
    }
    .map_err(Failed::Setup)?;
    if let Some(bytes) = memory::allowed() {
        // The rest is for connections, buffers of the system, and what the allocator keeps.
        gateway.confine(bytes);
    }
    let ledger = ledger.map(Ledger::start).transpose().map_err(Failed::Setup)?;
    if let Some(ledger) = &ledger {
        gateway.keep_ledger(Arc::clone(ledger));
    }
    told(announce(&location, &gateway.config(), format));
    if let Some(path) = &args.faults {
        tracing::warn!(
            manifest = %path.display(),
            "--faults: this gateway breaks answers on purpose; do not serve anybody with it"
        );
    }
    let stop = CancellationToken::new();
    let server = &gateway.config().server;
    let patience = server.drain_delay + server.drain + listen::GOODBYE + GRACE;
    {
        let _inside = control.enter();
        reload::serve(&gateway, settled, hangup);
    }
    control.spawn(signals.obey(stop.clone(), patience));
    let (watchdog, workers) = (gateway.watchdog(), Handle::current());
    control.spawn(async move { watchdog.keep(&workers).await });
    serve_by(&control, gateway, clients, operators, stop).await;
    if let Some(ledger) = ledger {
        // It writes its last rows; who waits for the disk must not be a worker.
        let closed = tokio::task::spawn_blocking(move || ledger.close(GRACE));
        if let Err(error) = closed.await {
            tracing::error!(%error, "the ledger was not closed");
        }
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Serves `gateway` until `stop` is cancelled; then goes on for `server.drain_delay`, and lets its turns finish for
/// `server.drain`.
pub async fn serve(gateway: Gateway, clients: TcpListener, operators: TcpListener, stop: CancellationToken) {
    serve_with(&|work| tokio::spawn(work), gateway, clients, operators, stop).await;
}

/// Serves likewise, and does on the threads of `control` what must go on when every worker is busy; `operators` is theirs.
async fn serve_by(
    control: &Control,
    gateway: Gateway,
    clients: TcpListener,
    operators: TcpListener,
    stop: CancellationToken,
) {
    let spawn = |work: Work| control.spawn(work).unwrap_or_else(|| tokio::spawn(async {}));
    serve_with(&spawn, gateway, clients, operators, stop).await;
}

async fn serve_with(
    spawn: &(dyn Fn(Work) -> JoinHandle<()> + Send + Sync),
    gateway: Gateway,
    clients: TcpListener,
    operators: TcpListener,
    stop: CancellationToken,
) {
    let config = gateway.config();
    // A socket does not know the level of its next request: the most patient one holds.
    let client_write = config.levels.iter().map(|l| l.timeouts.client_write).max().unwrap_or(CLIENT_WRITE);
    let manners = Manners { client_write, drain: config.server.drain };
    let token = config.admin.token.as_ref().map(|t| t.expose().into());
    // Operators can look in until the last turn is over.
    let closed = CancellationToken::new();
    let admin = spawn(Box::pin(listen::serve_some(
        operators,
        admin::routes(gateway.clone(), token),
        Manners { drain: std::time::Duration::ZERO, ..manners },
        OPERATORS,
        closed.clone(),
    )));
    let (delay, drain) = (config.server.drain_delay, manners.drain);
    let closing = CancellationToken::new();
    let draining = spawn({
        let (gateway, closing) = (gateway.clone(), closing.clone());
        Box::pin(async move {
            stop.cancelled().await;
            if !delay.is_zero() {
                gateway.leave();
                tracing::info!(?delay, "about to drain: new turns are still taken, and /readyz says 503");
                tokio::time::sleep(delay).await;
            }
            gateway.drain();
            closing.cancel();
            tracing::info!(open = gateway.open_turns(), "draining");
            tokio::time::sleep(drain).await;
            gateway.hang_up();
        })
    });
    let connections = config.server.max_connections.unwrap_or_else(descriptors::for_clients);
    listen::serve_some(clients, server::routes(gateway), manners, connections, closing).await;
    draining.abort();
    closed.cancel();
    if let Err(error) = admin.await {
        tracing::debug!(%error, "admin listener");
    }
}

/// A line for a shell that streams a turn from `base_url`.
pub(super) fn curl(base_url: &str, model: &str, key: Option<&str>) -> String {
    let key = key.map(|key| format!(" \\\n    -H \"authorization: Bearer {key}\"")).unwrap_or_default();
    format!(
        "curl -N {base_url}/chat/completions \\\n    \
         -H 'content-type: application/json'{key} \\\n    \
         -d '{{\"model\": \"{model}\", \"stream\": true,\n         \
         \"messages\": [{{\"role\": \"user\", \"content\": \"Hello!\"}}]}}'"
    )
}

/// Where a client on this machine finds what listens at `address`.
pub(super) fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}", SocketAddr::new(ip, address.port()))
}

// === helpers ===

/// A gateway whose standard error is closed serves all the same.
fn told(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::debug!(%error, "standard error");
    }
}

/// The addresses that the command line asks for, or else the environment.
struct Asked {
    listen: Option<SocketAddr>,
    admin: Option<SocketAddr>,
}

impl Asked {
    fn of(args: &Args, env: &dyn Resolver) -> Result<Self, Failed> {
        let of = |given: Option<SocketAddr>, variable: &str| match env.env(variable) {
            Some(text) if given.is_none() && !text.is_empty() => {
                address(&text).map(Some).map_err(|why| Failed::Setup(format!("{variable} is {text:?}: {why}")))
            }
            _ => Ok(given),
        };
        Ok(Self { listen: of(args.listen, "SEGUE_LISTEN")?, admin: of(args.admin, "SEGUE_ADMIN")? })
    }
}

/// Follows the addresses that were asked for. What holds for those of a file holds for them: who listens to everyone
/// must know who asks.
fn direct(config: &mut Config, asked: &Asked) -> Result<(), Failed> {
    if let Some(listen) = asked.listen {
        if !listen.ip().is_loopback() && config.tenants.is_none() && !config.server.allow_anonymous {
            return Err(Failed::Setup(format!(
                "--listen: without tenants everyone who reaches {listen} could spend your credit; add `[tenants.NAME]` \
                 with keys to the configuration, or set `server.allow_anonymous = true`; without a configuration, \
                 name a file of keys in SEGUE_KEYS_FILE"
            )));
        }
        config.server.listen = listen;
    }
    if let Some(admin) = asked.admin {
        if !admin.ip().is_loopback() && config.admin.token.is_none() {
            return Err(Failed::Setup(format!(
                "--admin: whoever reaches {admin} could open and close circuits; set `admin.token` (without a configuration, \
                 SEGUE_ADMIN_TOKEN), or listen on loopback"
            )));
        }
        config.admin.listen = admin;
    }
    Ok(())
}

/// The failures of a manifest.
fn faults(path: &Path) -> Result<Arc<Faults>, Failed> {
    let wrong = |why: String| Failed::Setup(format!("--faults {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Ok(inject::faults(Manifest::read(&text).map_err(wrong)?))
}

/// Starts what stands for connections of the dialect `mock`.
pub(super) async fn built_in(config: &mut Config) -> Result<Vec<Origin>, Failed> {
    let mut origins = Vec::new();
    for connection in config.connections.iter_mut().filter(|c| c.mock && c.base_url.is_none()) {
        let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let origin = mock::start(anywhere, mock::File::default()).await.map_err(|error| {
            Failed::Setup(format!("connections.{}: the built-in provider cannot listen: {error}", connection.name))
        })?;
        connection.base_url = Some(origin.base_url());
        origins.push(origin);
    }
    Ok(origins)
}

fn announce(location: &Location, config: &Config, format: Format) -> io::Result<()> {
    let place = location.to_string();
    if format == Format::Json {
        let levels = config.levels.iter().map(|l| &*l.name).collect::<Vec<_>>().join(", ");
        let (listen, admin) = (config.server.listen, config.admin.listen);
        tracing::info!(config = place, %listen, %admin, %levels, "segue serves");
        return Ok(());
    }
    let paint = Paint::of_stderr();
    let (clients, operators) = (format!("{}/v1", url(config.server.listen)), url(config.admin.listen));
    let mut out = io::stderr().lock();
    writeln!(out, "{} serves {place}", paint.ink(Ink::Bold, concat!("segue ", env!("CARGO_PKG_VERSION"))))?;
    writeln!(out, "  clients  {}", paint.ink(Ink::First, &clients))?;
    writeln!(out, "  admin    {operators}/api/turns, /api/circuits, /healthz")?;
    if *location == Location::Environment {
        for (at, connection) in config.connections.iter().enumerate() {
            let head = if at == 0 { "asks   " } else { "       " };
            let url = connection.base_url.as_deref().unwrap_or("its vendor");
            writeln!(out, "  {head}  {} at {}", connection.name, plain(url, MOST_OF_URL))?;
        }
    }
    let width = config.levels.iter().map(|l| l.name.chars().count()).max().unwrap_or_default();
    for (index, level) in config.levels.iter().enumerate() {
        let head = if index == 0 { "levels " } else { "       " };
        writeln!(out, "  {head}  {:width$}  {}", level.name, chain(level))?;
    }
    if let Some(level) = config.levels.first() {
        let key = config.tenants.as_ref().map(|_| "$SEGUE_KEY");
        writeln!(out, "  try it\n  {}", curl(&clients, &level.name, key))?;
    }
    writeln!(out, "{}", paint.ink(Ink::Dim, "  Ctrl-C stops it"))
}

fn chain(level: &Level) -> String {
    let targets = level.chain.iter().map(|e| format!("{}/{}", e.target.connection, e.target.model));
    targets.collect::<Vec<_>>().join(" → ")
}

/// An address of the command line.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| "write an IP address and a port, such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

async fn bind(address: SocketAddr, key: &str) -> Result<TcpListener, Failed> {
    TcpListener::bind(address).await.map_err(|error| {
        Failed::Setup(format!("{key}: cannot listen on {address}: {error}; choose another address or stop who has it"))
    })
}

/// The most characters of a base URL that are shown at the start.
const MOST_OF_URL: usize = 100;

/// Something that is done beside the turns.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The most connections of operators at once.
const OPERATORS: usize = 64;

/// After the drain, and the last words of turns that it ended, the process may take so long to end by itself.
const GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Without a level there is nothing to write.
const CLIENT_WRITE: std::time::Duration = std::time::Duration::from_secs(30);

const EXAMPLES: &str = "\
Examples:
  segue serve --config segue.toml
  OPENAI_API_KEY=… ANTHROPIC_API_KEY=… segue serve
  OLLAMA_HOST=127.0.0.1:11434 segue serve --listen 127.0.0.1:8090
  segue serve --config segue.toml --faults manifest.json
  curl -N http://127.0.0.1:8080/v1/chat/completions \\
    -H 'content-type: application/json' \\
    -d '{\"model\": \"normal\", \"stream\": true,
         \"messages\": [{\"role\": \"user\", \"content\": \"Hello!\"}]}'

Environment:
  SEGUE_CONFIG      the configuration, if --config names none
  SEGUE_LISTEN, SEGUE_ADMIN
                    where clients and operators connect, if --listen and --admin do not say
  SEGUE_KEYS_FILE   without a configuration: a file of clients' keys, a tenant's name and a key
                    on each line (`segue key NAME` makes one)
  SEGUE_ADMIN_TOKEN without a configuration: the operators' token
  SEGUE_LOG         `info`, the default: turns in which a provider failed, circuits; `warn`: turns
                    that failed, circuits that opened; `segue=debug`: every turn
  SEGUE_LOG_FORMAT  `text`, the default; `json`: one object a line, and nothing else
  NO_COLOR          no colours on a terminal either

Exit codes:
  0    stopped by Ctrl-C or SIGTERM, after its turns had ended or `server.drain` was over
  1    stopped likewise, but its workers did not end their turns even then
  130  stopped at once, by a second Ctrl-C or SIGTERM
  2    the configuration is wrong, there is none, or an address is taken";

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::{Control, Gateway, curl, serve_by, url};
    use crate::config::{self, Nothing};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::time::Duration;
    use tokio_util::sync::CancellationToken;

    /// Asks the operators' side, by a thread of its own, until the answer begins with `status`.
    fn until(admin: SocketAddr, path: &str, status: &str) -> String {
        loop {
            let mut stream = TcpStream::connect(admin).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            if answer.starts_with(&format!("HTTP/1.1 {status}")) {
                return answer;
            }
        }
    }

    #[test]
    fn operators_are_answered_while_every_worker_is_busy() {
        let workers = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let control = Control::start().unwrap();
        let text = "[connections.a]\ndialect = \"chat\"\nbase_url = \"http://127.0.0.1:1\"\n\
                    [levels.l]\nchain = [{ connection = \"a\", model = \"m\" }]";
        let config = config::load(text, "test.toml", &Nothing).unwrap().config;
        let listen = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            listener.set_nonblocking(true).unwrap();
            listener
        };
        let (clients, operators) = (listen(), listen());
        let admin = operators.local_addr().unwrap();
        let operators = {
            let _inside = control.enter();
            tokio::net::TcpListener::from_std(operators).unwrap()
        };
        let (gateway, clients) = {
            let _inside = workers.enter();
            (Gateway::new(config).unwrap(), tokio::net::TcpListener::from_std(clients).unwrap())
        };
        let (watchdog, handle) = (gateway.watchdog(), workers.handle().clone());
        control.spawn(async move { watchdog.keep(&handle).await });
        let stop = CancellationToken::new();
        let (release, held) = std::sync::mpsc::sync_channel::<()>(0);
        std::thread::scope(|threads| {
            threads.spawn(|| workers.block_on(serve_by(&control, gateway, clients, operators, stop.clone())));
            until(admin, "/readyz", "200");
            workers.spawn(async move { held.recv() });
            let told = until(admin, "/readyz", "503");
            assert!(told.contains("the workers have not answered"), "{told}");
            until(admin, "/healthz", "200");
            assert!(until(admin, "/api/workers", "200").contains("\"answering\":false"));
            release.send(()).unwrap();
            until(admin, "/readyz", "200");
            stop.cancel();
        });
    }

    #[test]
    fn urls_are_those_that_a_client_on_this_machine_can_use() {
        for (address, expected) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:9", "http://[::1]:9"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ] {
            assert_eq!(address.parse().map(url), Ok(expected.to_owned()));
        }
    }

    #[test]
    fn the_line_to_try_holds_json() {
        let line = curl("http://x/v1", "normal", Some("$KEY"));
        let body = line.split('\'').rev().nth(1).unwrap_or_default();
        assert!(serde_json::from_str::<serde_json::Value>(body).is_ok(), "{line}");
        assert!(line.contains("Bearer $KEY"));
    }
}
