//! The delivered text against what the providers said: what is missing, told twice, or of somebody else.
//!
//! A text that follows its answer slot by slot is whole. Any other is aligned with the answer word by word, and every
//! word that is too much or too little is counted in characters, the white space before it included.

use super::answer::{Answer, Slot};
use super::record::Seam;

/// What a text was found to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// What became of it.
    pub seam: Seam,
    /// Where each word that belongs begins, and which provider's it is.
    pub voices: Vec<(usize, usize)>,
}

/// A word that should stand at a place, in each provider's way.
type Place<'a> = Vec<(usize, &'a str)>;

/// How a word and a place were brought together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    Start,
    /// The word is right.
    Same(usize),
    /// The word is too much.
    Extra,
    /// The place is empty.
    Lost,
    /// Two right words without the space between them.
    Glued(usize),
    /// A part of the right word; so many characters are missing.
    Less(usize, usize),
    /// The right word, and so many characters more; they may be a beginning of it that was told before.
    More(usize, usize, bool),
}

/// Compares `text` with `answer`; `finished`: it ended with a finish.
pub fn compare(answer: &Answer, text: &str, finished: bool) -> Found {
    let walk = answer.walk(text);
    if walk.slots == answer.slots.len() && walk.bytes == text.len() {
        return Found { seam: Seam::default(), voices: walk.voices };
    }
    // What is right at the start need not be aligned; the last word of it may have grown a tail.
    let plain = answer.slots.len() - usize::from(answer.slots.last().is_some_and(|slot| slot.otherwise.is_some()));
    let skip = walk.slots.min(plain).saturating_sub(1);
    let from = walk.voices.get(skip).map_or(0, |(at, _)| *at);
    let words: Vec<(usize, &str)> = words(text, from);
    let last = answer.slots.last();
    let ends = last.filter(|slot| slot.otherwise.is_some());
    let ways: Vec<Option<(usize, &str)>> = ends.map_or_else(|| vec![None], |slot| slot.ways().map(Some).collect());
    let found = ways.into_iter().map(|end| {
        let mut places: Vec<Place<'_>> = answer.slots[skip..plain].iter().map(place).collect();
        if let Some((voice, way)) = end {
            places.extend(way.split_whitespace().map(|word| vec![(voice, word)]));
        }
        align(answer, &words, &places, finished)
    });
    let mut found = found.min_by_key(|(cost, _)| *cost).map(|(_, found)| found).unwrap_or_default();
    found.voices.splice(0..0, walk.voices[..skip].iter().copied());
    let spaces = text[from..].trim_start().chars().filter(|c| c.is_whitespace()).count();
    let mut spare = spaces.saturating_sub(words.len().saturating_sub(1));
    if text.ends_with(char::is_whitespace) && 0 < found.seam.lost && 0 < spare {
        // It belongs to the word that was lost after it.
        spare -= 1;
        found.seam.lost -= 1;
    }
    found.seam.repeated += spare;
    found
}

fn align(answer: &Answer, words: &[(usize, &str)], places: &[Place<'_>], finished: bool) -> (usize, Found) {
    let width = places.len() + 1;
    let mut best = vec![(usize::MAX, Move::Start); (words.len() + 1) * width];
    best[0] = (0, Move::Start);
    for i in 0..=words.len() {
        for j in 0..width {
            let (cost, _) = best[i * width + j];
            let mut offer = |i: usize, j: usize, more: usize, by: Move| {
                let cell = &mut best[i * width + j];
                if cost + more < cell.0 {
                    *cell = (cost + more, by);
                }
            };
            if let (Some((_, word)), Some(place)) = (words.get(i), places.get(j)) {
                for (more, by, step) in meet(word, place, places.get(j + 1)) {
                    offer(i + 1, j + step, more, by);
                }
            }
            if i < words.len() {
                offer(i + 1, j, EXTRA, Move::Extra);
            }
            if j < places.len() {
                offer(i, j + 1, LOST, Move::Lost);
            }
        }
    }
    let total = best[words.len() * width + places.len()].0;
    let mut found = Found::default();
    let mut voice = 0;
    let (mut i, mut j) = (words.len(), places.len());
    let mut complete = true;
    let mut at_end = true;
    while (i, j) != (0, 0) {
        let (_, by) = best[i * width + j];
        let seam = &mut found.seam;
        match by {
            Move::Start => break,
            Move::Same(who) | Move::Less(who, _) | Move::More(who, ..) => {
                (i, j) = (i - 1, j - 1);
                voice = who;
                found.voices.push((words[i].0, who));
                match by {
                    Move::Less(_, missing) => {
                        seam.lost += missing;
                        complete &= !at_end;
                    }
                    Move::More(_, extra, true) => seam.repeated += extra,
                    Move::More(_, extra, false) => seam.foreign += extra,
                    _ => {}
                }
                at_end = false;
            }
            Move::Glued(who) => {
                (i, j) = (i - 1, j - 2);
                voice = who;
                found.voices.push((words[i].0, who));
                seam.lost += 1;
                at_end = false;
            }
            Move::Extra => {
                i -= 1;
                let size = words[i].1.chars().count() + 1;
                if is_known(answer, words[i].1) { seam.repeated += size } else { seam.foreign += size }
            }
            Move::Lost => {
                j -= 1;
                let said = places[j].iter().find(|(who, _)| *who == voice).or_else(|| places[j].first());
                seam.lost += said.map_or(0, |(_, word)| word.chars().count() + 1);
                complete &= !at_end;
            }
        }
    }
    found.voices.reverse();
    found.seam.faked = finished && !complete;
    (total, found)
}

/// How `word` may stand at `place`: what it costs, and how many places it takes.
fn meet(word: &str, place: &Place<'_>, next: Option<&Place<'_>>) -> Vec<(usize, Move, usize)> {
    let mut ways = Vec::new();
    for &(who, right) in place {
        let size = |text: &str| text.chars().count();
        if word == right {
            return vec![(0, Move::Same(who), 1)];
        } else if let Some(rest) = word.strip_prefix(right) {
            if next.is_some_and(|next| next.iter().any(|(_, after)| *after == rest)) {
                ways.push((GLUED, Move::Glued(who), 2));
            }
            ways.push((PART, Move::More(who, size(rest), right.ends_with(rest)), 1));
        } else if let Some(before) = word.strip_suffix(right) {
            let again = place.iter().any(|(_, way)| way.starts_with(before));
            ways.push((PART, Move::More(who, size(before), again), 1));
        } else if right.starts_with(word) || right.ends_with(word) {
            ways.push((PART, Move::Less(who, size(right) - size(word)), 1));
        }
    }
    ways
}

/// Whether a word, or the beginning of one that was broken off, is of this answer.
fn is_known(answer: &Answer, word: &str) -> bool {
    let begins = |slot: &Slot| {
        let ways: Vec<&str> = slot.ways().flat_map(|(_, way)| way.split_whitespace()).collect();
        ways.iter().any(|way| way.starts_with(word))
    };
    answer.slots.iter().any(begins)
}

fn place(slot: &Slot) -> Place<'_> {
    slot.ways().map(|(voice, way)| (voice, way.trim_start())).collect()
}

/// The words from byte `from` on, and where each begins.
fn words(text: &str, from: usize) -> Vec<(usize, &str)> {
    let start = text.as_ptr() as usize;
    text[from..].split_whitespace().map(|word| (word.as_ptr() as usize - start, word)).collect()
}

// === consts ===

/// What the moves of an alignment cost. A word that nobody said is less likely than one that was lost, so that a cut
/// end is not taken for another end.
const EXTRA: usize = 7;
const LOST: usize = 3;
/// Less than a word too much and one too little.
const PART: usize = 5;
const GLUED: usize = 1;

#[cfg(test)]
mod tests {
    use super::super::answer::tests::conversation;
    use super::*;
    use crate::rig::seed::Dice;

    /// A text by several providers, as its words.
    fn told(answer: &Answer, dice: &mut Dice) -> Vec<String> {
        let switch = dice.between(1, answer.slots.len() - 2);
        let (first, second) = (dice.below(4), dice.below(4));
        let knows = !dice.once_in(3);
        let mut pieces: Vec<String> = answer.slots[..switch].iter().map(|s| s.says[first].clone()).collect();
        pieces.extend(answer.told_by(second, switch, knows));
        pieces
    }

    fn each(mut check: impl FnMut(&Answer, Vec<String>, &mut Dice)) {
        for seed in 0..100 {
            let mut dice = Dice::new(seed);
            let answer = Answer::of(&conversation(&format!("c{seed}")), if seed % 2 == 0 { 4 } else { 0 });
            let pieces = told(&answer, &mut dice);
            check(&answer, pieces, &mut dice);
        }
    }

    fn size(piece: &str) -> usize {
        piece.trim().chars().count() + 1
    }

    #[test]
    fn a_spliced_text_is_whole_and_its_voices_are_known() {
        each(|answer, pieces, _| {
            let found = compare(answer, &pieces.concat(), true);
            assert!(found.seam.is_whole());
            assert_eq!(found.voices.len(), answer.slots.len());
        });
    }

    #[test]
    fn a_word_that_is_missing_is_lost() {
        each(|answer, mut pieces, dice| {
            let gone = pieces.remove(dice.between(1, 30));
            let seam = compare(answer, &pieces.concat(), true).seam;
            assert!(seam.lost.abs_diff(size(&gone)) < 9 && 0 < seam.lost, "{seam:?} for {gone}");
            assert_eq!((seam.repeated, seam.foreign, seam.faked), (0, 0, false), "{gone}");
        });
    }

    #[test]
    fn a_word_that_is_told_twice_is_repeated() {
        each(|answer, mut pieces, dice| {
            let at = dice.between(1, 30);
            pieces.insert(at, pieces[at].clone());
            let seam = compare(answer, &pieces.concat(), true).seam;
            assert_eq!(seam, Seam { repeated: size(&pieces[at]), ..Seam::default() });
        });
    }

    #[test]
    fn a_beginning_that_is_told_again_is_repeated() {
        each(|answer, pieces, dice| {
            let begun = pieces[..dice.between(2, 30)].concat();
            let text = format!("{begun}\n{}", pieces.concat());
            let seam = compare(answer, &text, true).seam;
            assert_eq!(seam, Seam { repeated: begun.chars().count() + 1, ..Seam::default() });
        });
    }

    #[test]
    fn a_word_of_another_conversation_is_foreign() {
        each(|answer, mut pieces, dice| {
            let other = Answer::of(&conversation("another"), 0);
            let at = dice.between(1, 30);
            pieces.insert(at, other.slots[5].says[dice.below(4)].clone());
            let seam = compare(answer, &pieces.concat(), true).seam;
            assert_eq!(seam, Seam { foreign: size(&pieces[at]), ..Seam::default() });
        });
    }

    #[test]
    fn an_end_that_is_cut_is_lost_and_with_a_finish_it_is_faked() {
        each(|answer, mut pieces, dice| {
            let gone = pieces.split_off(dice.between(5, pieces.len() - 1)).concat();
            let seam = compare(answer, &pieces.concat(), true).seam;
            assert!(seam.faked && seam.lost > 0 && seam.repeated == 0 && seam.foreign == 0, "{seam:?} without {gone}");
            assert!(!compare(answer, &pieces.concat(), false).seam.faked);
        });
        each(|answer, pieces, _| {
            let text = pieces.concat();
            let seam = compare(answer, &text[..text.len() - 3], true).seam;
            assert_eq!(seam, Seam { lost: 3, faked: true, ..Seam::default() });
        });
    }

    #[test]
    fn white_space_counts_too() {
        each(|answer, mut pieces, dice| {
            let at = dice.between(1, 30);
            let whole = pieces[at].clone();
            pieces[at] = whole.trim_start().to_owned();
            assert_eq!(compare(answer, &pieces.concat(), true).seam, Seam { lost: 1, ..Seam::default() });
            pieces[at] = format!(" {whole}");
            assert_eq!(compare(answer, &pieces.concat(), true).seam, Seam { repeated: 1, ..Seam::default() });
        });
    }

    #[test]
    fn nothing_at_all_is_all_lost() {
        let answer = Answer::of(&conversation("c1"), 0);
        let seam = compare(&answer, "", false).seam;
        assert!(seam.lost > 200 && !seam.faked, "{seam:?}");
        assert!(compare(&answer, "", true).seam.faked);
    }
}
