//! How much memory this process may have.

use std::fs;
use std::path::Path;

/// The least of what the machine has, what its control groups allow, and what the process's own limits allow, in bytes;
/// `None` where nothing of that can be read.
pub(super) fn allowed() -> Option<usize> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let machine = read("/proc/meminfo").lines().find_map(|l| kibibytes(l.strip_prefix("MemTotal:")?));
    let own = ["Max address space", "Max data size"].into_iter();
    let limits = read("/proc/self/limits");
    let own = own.filter_map(|name| limits.lines().find_map(|l| number(l.strip_prefix(name)?)));
    let groups = read("/proc/self/cgroup");
    let groups = groups.lines().flat_map(|line| group(line, Path::new("/sys/fs/cgroup")));
    machine.into_iter().chain(own).chain(groups).min()
}

/// The limits of a control group and of those around it.
fn group(line: &str, root: &Path) -> Vec<usize> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(kinds), Some(path)) = (fields.next(), fields.next(), fields.next()) else { return Vec::new() };
    let (root, file) = match kinds {
        "" => (root.to_path_buf(), "memory.max"),
        "memory" => (root.join("memory"), "memory.limit_in_bytes"),
        _ => return Vec::new(),
    };
    let inner = root.join(path.trim_start_matches('/'));
    // In a container the path may be that of the host; then the group's own root is what there is.
    let around = inner.ancestors().take_while(|dir| dir.starts_with(&root));
    around.filter_map(|dir| number(&fs::read_to_string(dir.join(file)).ok()?)).collect()
}

fn number(text: &str) -> Option<usize> {
    text.split_whitespace().next()?.parse().ok()
}

fn kibibytes(text: &str) -> Option<usize> {
    number(text)?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_of_all_groups_around_count() -> std::io::Result<()> {
        let root = std::env::temp_dir().join(format!("segue-groups-{}", std::process::id()));
        fs::create_dir_all(root.join("a/b"))?;
        fs::write(root.join("memory.max"), "max\n")?;
        fs::write(root.join("a/memory.max"), "1000\n")?;
        fs::write(root.join("a/b/memory.max"), "3000\n")?;
        assert_eq!(group("0::/a/b", &root), [3000, 1000]);
        assert_eq!(group("0::/elsewhere", &root), [0_usize; 0]);
        assert_eq!(group("3:cpu:/a", &root), [0_usize; 0]);
        fs::remove_dir_all(root)
    }

    #[test]
    fn a_limit_is_a_number_or_none() {
        assert_eq!(number("                 536870912            536870912            bytes"), Some(512 << 20));
        assert_eq!((number("unlimited unlimited"), kibibytes("  4 kB")), (None, Some(4096)));
    }
}
