//! A map from names to nodes. An expression uses few names, so a sorted list needs less memory
//! than a tree.

/// The nodes of some names, sorted by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(Vec<(Box<str>, usize)>);

impl Names {
    pub(super) fn get(&self, name: &str) -> Option<usize> {
        self.place(name).ok().map(|at| self.0[at].1)
    }

    /// Sets the node of a name.
    pub(super) fn insert(&mut self, name: &str, node: usize) {
        match self.place(name) {
            Ok(at) => self.0[at].1 = node,
            Err(at) => {
                self.0.reserve_exact(1);
                self.0.insert(at, (name.into(), node));
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(name, node)| (&**name, *node))
    }

    fn place(&self, name: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| (**known).cmp(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_newest_node() {
        let mut names = Names::default();
        for (name, node) in [("b", 1), ("a", 2), ("c", 3), ("b", 4)] {
            names.insert(name, node);
        }
        assert_eq!(names.iter().collect::<Vec<_>>(), [("a", 2), ("b", 4), ("c", 3)]);
        assert_eq!((names.get("b"), names.get("d")), (Some(4), None));
    }
}
