//! The ids of answers and of their items.
//!
//! They are made of the chance that was drawn for the request, so they are the same whoever answers, and an item's id
//! tells which answer it is part of.

/// The id of the answer to the request that drew `minted`.
pub(super) fn answer(minted: u128) -> String {
    format!("resp_{minted:032x}")
}

/// The id of an item of that answer; `prefix` tells its kind.
pub(super) fn item(prefix: &str, minted: u128, index: u32) -> String {
    format!("{prefix}_{minted:032x}{index:04x}")
}

/// The id of a call whose provider gave it none.
pub(super) fn call(minted: u128, call: u32) -> String {
    format!("call_{minted:024x}{call:02x}")
}

/// The id of the answer that an item belongs to; `None` for an item that was not made here.
pub(super) fn answer_of(item: &str) -> Option<String> {
    let (prefix, rest) = item.split_once('_')?;
    let ours = ["msg", "fc", "ctc", "rs", "it"].contains(&prefix)
        && (36..=40).contains(&rest.len())
        && rest.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    ours.then(|| format!("resp_{}", &rest[..32]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_tells_its_answer() {
        for (prefix, index) in [("msg", 0), ("fc", 15), ("rs", 70_000)] {
            assert_eq!(answer_of(&item(prefix, 7, index)), Some(answer(7)));
        }
        let foreign = format!("msg_{}", "A".repeat(36));
        for other in ["msg_1", "", "resp_", "x_00000000000000000000000000000000000a", &foreign] {
            assert_eq!(answer_of(other), None, "{other}");
        }
    }
}
