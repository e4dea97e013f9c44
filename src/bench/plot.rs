//! Plots as SVG.
//!
//! How long a listener waits is a matter of the tail, so distributions are drawn as the share of turns that wait
//! *longer*, on two logarithmic axes: a policy that halves the wait of one turn in a hundred is seen to.

use super::stats::{Sample, Share};
use plotters::prelude::{
    ChartBuilder, Color, IntoDrawingArea, IntoLogRange, LineSeries, PathElement, RGBColor, Rectangle, SVGBackend,
    SeriesLabelPosition, Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{BLACK, IntoTextStyle, TextStyle};
use std::fmt;

/// A distribution with its name.
pub type Line<'a> = (&'a str, &'a Sample);

/// Bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars<'a> {
    /// What they are.
    pub name: &'a str,
    /// One for each group; `None` leaves its place empty.
    pub shares: Vec<Option<Share>>,
}

/// A plot could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoPlot(String);

/// The share of turns that take longer than so many milliseconds, one line for each of `lines`; an SVG document.
/// `axis` names what is measured.
///
/// # Errors
/// Where the drawing library fails.
pub fn tails(title: &str, axis: &str, lines: &[Line<'_>]) -> Result<String, NoPlot> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(NoPlot::of)?;
        let most = lines.iter().filter_map(|(_, s)| s.values().last()).copied().fold(2.0 * LEAST, f64::max);
        let count = lines.iter().map(|(_, sample)| sample.values().len()).max().unwrap_or(1).max(10);
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d((LEAST..most * 1.2).log_scale(), (0.5 / count as f64..1.0).log_scale())
            .map_err(NoPlot::of)?;
        chart
            .configure_mesh()
            .x_desc(axis)
            .y_desc("share of turns that take longer")
            .x_label_formatter(&|ms| milliseconds(*ms))
            .y_label_formatter(&|share| percentage(*share))
            .light_line_style(RGBColor(240, 240, 240))
            .draw()
            .map_err(NoPlot::of)?;
        for (index, (name, sample)) in lines.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let style = colour.stroke_width(2);
            chart
                .draw_series(LineSeries::new(tail(sample), style))
                .map_err(NoPlot::of)?
                .label(*name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::LowerLeft)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(NoPlot::of)?;
        area.present().map_err(NoPlot::of)?;
    }
    Ok(svg)
}

/// Shares as bars with their intervals, side by side in `groups`; an SVG document.
///
/// # Errors
/// Where the drawing library fails.
pub fn bars(title: &str, groups: &[&str], bars: &[Bars<'_>]) -> Result<String, NoPlot> {
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(NoPlot::of)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(64)
            // Room for the names of the colours above the bars, and for those of the groups below.
            .build_cartesian_2d(0.0..groups.len().max(1) as f64, -0.08..1.3)
            .map_err(NoPlot::of)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .y_desc("share of conversations, with its 95 % interval")
            .y_label_formatter(&|share| {
                if (-1e-9..=1.0 + 1e-9).contains(share) { percentage(*share) } else { "".into() }
            })
            .light_line_style(RGBColor(240, 240, 240))
            .draw()
            .map_err(NoPlot::of)?;
        let centred = Pos::new(HPos::Center, VPos::Center);
        let font: TextStyle<'_> = ("sans-serif", 14).into_text_style(&area).pos(centred);
        let names = groups.iter().enumerate();
        let names = names.map(|(group, name)| Text::new((*name).to_owned(), (group as f64 + 0.5, -0.04), font.clone()));
        chart.draw_series(names).map_err(NoPlot::of)?;
        let width = 0.8 / bars.len().max(1) as f64;
        for (index, set) in bars.iter().enumerate() {
            let colour = COLOURS[index % COLOURS.len()];
            let there = || set.shares.iter().enumerate().filter_map(|(group, share)| Some((group, (*share)?)));
            let left = |group: usize| group as f64 + 0.1 + index as f64 * width;
            let boxes = there().map(|(group, share)| {
                let (left, right) = (left(group) + 0.05 * width, left(group) + 0.95 * width);
                Rectangle::new([(left, 0.0), (right, share.share)], colour.mix(0.8).filled())
            });
            chart
                .draw_series(boxes)
                .map_err(NoPlot::of)?
                .label(set.name)
                .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 18, y + 5)], colour.mix(0.8).filled()));
            let whiskers = there().map(|(group, share)| {
                let middle = left(group) + 0.5 * width;
                PathElement::new([(middle, share.low), (middle, share.high)], BLACK.stroke_width(2))
            });
            chart.draw_series(whiskers).map_err(NoPlot::of)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .border_style(BLACK.mix(0.3))
            .draw()
            .map_err(NoPlot::of)?;
        area.present().map_err(NoPlot::of)?;
    }
    Ok(svg)
}

// === impl NoPlot ===

impl NoPlot {
    fn of(error: impl fmt::Display) -> Self {
        Self(error.to_string())
    }
}

impl fmt::Display for NoPlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the plot could not be drawn: {}", self.0)
    }
}

impl std::error::Error for NoPlot {}

// === helpers ===

/// Values and the share of the sample that is larger. Few points where the sample is dense, all of its last hundred.
fn tail(sample: &Sample) -> Vec<(f64, f64)> {
    let values = sample.values();
    let count = values.len();
    let step = (count / DENSE).max(1);
    let kept = |rank: &usize| rank.is_multiple_of(step) || count - rank <= TAIL;
    let point = |rank: usize| (values[rank].max(LEAST), (count - rank) as f64 / count as f64);
    (0..count).filter(kept).map(point).collect()
}

fn milliseconds(ms: f64) -> String {
    if ms >= 1000.0 { format!("{} s", ms / 1000.0) } else { format!("{ms} ms") }
}

fn percentage(share: f64) -> String {
    format!("{} %", (share * 1e5).round() / 1e3)
}

/// Pixels.
const SIZE: (u32, u32) = (860, 520);

/// The left edge, in milliseconds; shorter times stand there.
const LEAST: f64 = 10.0;

/// Points outside the tail.
const DENSE: usize = 400;

/// Points of the tail that are all drawn.
const TAIL: usize = 100;

/// Told apart by people who see few colours too (Okabe and Ito).
const COLOURS: [RGBColor; 5] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
];

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test's panic is its report")]
    use super::*;

    #[test]
    fn a_plot_is_an_svg_with_a_line_and_a_name_for_each_sample() {
        let (fast, slow) = (Sample::new((1..500).map(f64::from)), Sample::new((1..500).map(|i| f64::from(i) * 17.0)));
        let svg = tails("Waiting", "first token", &[("fast", &fast), ("slow", &slow)]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for word in ["Waiting", "first token", "fast", "slow"] {
            assert!(svg.contains(word), "{word}");
        }
        assert!(svg.matches("<polyline").count() >= 4, "two lines and two legends");
    }

    #[test]
    fn bars_have_names_groups_and_whiskers() {
        let sets = [
            Bars { name: "stateless", shares: vec![Share::new(0, 750), None] },
            Bars { name: "splice", shares: vec![Share::new(750, 750), Share::new(700, 750)] },
        ];
        let svg = bars("Kept", &["turn", "rolling"], &sets).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for word in ["Kept", "turn", "rolling", "stateless", "splice", "100 %"] {
            assert!(svg.contains(word), "{word}");
        }
        assert_eq!(svg.matches("stroke=\"#000000\" stroke-width=\"2\"").count(), 3, "a whisker for each share");
        assert!(bars("", &[], &[]).is_ok());
    }

    #[test]
    fn nothing_and_zero_can_be_drawn() {
        assert!(tails("", "", &[]).is_ok());
        assert!(tails("", "", &[("none", &Sample::default()), ("zero", &Sample::new([0.0]))]).is_ok());
    }

    #[test]
    fn the_tail_falls_from_all_to_one() {
        let points = tail(&Sample::new((0..10_000).map(f64::from)));
        assert_eq!((points[0], points[points.len() - 1]), ((LEAST, 1.0), (9999.0, 1e-4)));
        assert!(points.len() < 600);
    }
}
