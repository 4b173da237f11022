//! Text that occurs again and again, kept once.

use foldhash::fast::FixedState;
use indexmap::{IndexMap, IndexSet};

/// A set that remembers the order in which its members came.
pub(crate) type Set<T> = IndexSet<T, FixedState>;

/// A map that remembers the order in which its keys came.
pub(crate) type Map<K, V> = IndexMap<K, V, FixedState>;

/// Text kept in some [`Names`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Symbol(u32);

/// The texts, in the order in which they were first met.
#[derive(Debug, Default)]
pub(crate) struct Interner {
    texts: Set<Box<str>>,
}

impl Interner {
    /// The name of a text; it is kept where it is new.
    pub(crate) fn intern(&mut self, text: &str) -> Symbol {
        // An index is as wide as a name: four thousand million texts would not fit into memory anyway.
        let index = match self.texts.get_index_of(text) {
            Some(index) => index,
            None => self.texts.insert_full(text.into()).0,
        };
        Symbol(index as u32)
    }

    /// The name of a text that is already known.
    pub(crate) fn find(&self, text: &str) -> Option<Symbol> {
        self.texts.get_index_of(text).map(|index| Symbol(index as u32))
    }

    /// The text of a name that these gave.
    pub(crate) fn resolve(&self, name: Symbol) -> &str {
        &self.texts[name.0 as usize]
    }

    /// All of them, each by its name's number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(|text| &**text)
    }
}

impl Symbol {
    /// Its place in the order of the names it is among.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}
