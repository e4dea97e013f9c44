//! How promptly losers are closed and hang-ups passed on, over loopback sockets: 1,000 of each, on HTTP/1.1 and
//! HTTP/2. `cargo bench --bench races`; `-- 200` runs fewer.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench's panic is its report")]

#[path = "../tests/support/mod.rs"]
mod support;

use segue::bench::machine::Machine;
use segue::bench::table::Table;
use std::time::Duration;
use support::races::{Http, hangups, losers, percentile};

fn main() {
    let count = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    println!("{count} races a row; {}\n", Machine::this());
    let mut table = Table::new(["from … to", "HTTP", "p50 ms", "p95", "p99", "max", "p99 within 10 ms"]);
    let mut row = |what: &str, http: Http, mut times: Vec<Duration>| {
        let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        let p99 = percentile(&mut times, 99);
        table.row([
            what.to_owned(),
            if http == Http::One { "1.1" } else { "2" }.to_owned(),
            ms(percentile(&mut times, 50)),
            ms(percentile(&mut times, 95)),
            ms(p99),
            ms(percentile(&mut times, 100)),
            if p99 <= Duration::from_millis(10) { "yes" } else { "NO" }.to_owned(),
        ]);
    };
    for http in [Http::One, Http::Two] {
        row("winner's first delta … loser closed", http, runtime.block_on(losers(http, count)));
        row("client hangs up … provider sees it", http, runtime.block_on(hangups(http, count)));
    }
    println!("{table}");
}
