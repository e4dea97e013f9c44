//! What tokens cost: the configuration's own prices, and a table of well-known models.
//!
//! The table is data with a date, in `config/prices.toml`. A target that neither knows has no price, and nothing is
//! presumed: what it cost is told in tokens only.

use super::{Ledger, Price};
use serde::Deserialize;
use std::collections::HashMap;

/// All prices that are known, in US dollars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prices {
    own: Vec<Price>,
    table: HashMap<String, Row>,
}

/// A row of the table, per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
struct Row {
    input: f64,
    output: f64,
}

#[derive(Debug, Deserialize)]
struct Table {
    models: HashMap<String, Row>,
}

// === impl Prices ===

impl Prices {
    /// Those of a configuration, before those of the table.
    pub fn of(ledger: &Ledger) -> Self {
        // A test reads the table; a program whose table cannot be read goes on without.
        let table = toml::from_str::<Table>(PRICES).map(|table| table.models).unwrap_or_default();
        Self { own: ledger.prices.clone(), table }
    }

    /// What so many tokens cost in dollars; `None`: nobody knows.
    pub fn cost(&self, connection: &str, model: &str, prompt: u64, completion: u64) -> Option<f64> {
        let own = self.own.iter().find(|p| p.connection == connection && p.model == model);
        let row = own.map(|p| Row { input: p.input, output: p.output }).or_else(|| self.row(model))?;
        // Tokens are far below what a float holds exactly.
        Some((prompt as f64 * row.input + completion as f64 * row.output) / 1e6)
    }

    fn row(&self, model: &str) -> Option<Row> {
        let name = base(model);
        self.table.get(model).or_else(|| self.table.get(name)).copied()
    }
}

// === helpers ===

/// A model's name without its vendor before it, and without a date or `-latest` behind it.
fn base(model: &str) -> &str {
    let name = model.rsplit_once('/').map_or(model, |(_, name)| name);
    if let Some(name) = name.strip_suffix("-latest") {
        return name;
    }
    if let Some((name, _)) = name.split_once('@') {
        return name;
    }
    let date = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-');
    let digits = name[date.len()..].bytes().filter(u8::is_ascii_digit).count();
    // A date has eight digits; what is left may belong to the name.
    if digits < 8 {
        return name;
    }
    let mut left = 8;
    let cut = name.rfind(|c: char| {
        left -= i32::from(c.is_ascii_digit());
        left == 0
    });
    cut.map_or(name, |cut| name[..cut].trim_end_matches('-'))
}

const PRICES: &str = include_str!("../../config/prices.toml");

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn the_table_is_sound() {
        let table = toml::from_str::<Table>(PRICES).unwrap().models;
        assert!(table.len() >= 20);
        for (model, row) in table {
            assert!(0.0 < row.input && row.input < row.output, "{model}");
            assert_eq!(base(&model), model);
        }
    }

    #[test]
    fn names_are_known_with_their_dates_and_others_are_not() {
        for (model, known) in [
            ("gpt-4.1", Some("gpt-4.1")),
            ("gpt-4.1-2025-04-14", Some("gpt-4.1")),
            ("openai/gpt-4o-mini-2024-07-18", Some("gpt-4o-mini")),
            ("claude-sonnet-4-5-20250929", Some("claude-sonnet-4-5")),
            ("claude-sonnet-4-20250514", Some("claude-sonnet-4")),
            ("claude-3-5-haiku-latest", Some("claude-3-5-haiku")),
            ("claude-opus-4-1@20250805", Some("claude-opus-4-1")),
            ("claude-opus-4-9", None),
            ("gpt-4.1-turbo", None),
            ("", None),
            ("2025-04-14", None),
        ] {
            let prices = Prices::of(&Ledger::default());
            assert_eq!(prices.row(model), known.map(|name| prices.table[name]), "{model}");
        }
    }

    #[test]
    fn the_configuration_goes_first_and_for_its_own_target_only() {
        let price = Price { connection: "a".into(), model: "gpt-4.1".into(), input: 1.0, output: 3.0 };
        let prices = Prices::of(&Ledger { prices: vec![price], ..Ledger::default() });
        assert_eq!(prices.cost("a", "gpt-4.1", 1_000_000, 2_000_000), Some(7.0));
        assert_eq!(prices.cost("b", "gpt-4.1", 1_000_000, 2_000_000), Some(18.0));
        assert_eq!(prices.cost("a", "a-model-of-ours", 1, 1), None);
    }
}
