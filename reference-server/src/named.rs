//! Enumerations whose variants people call by name: each is a row of variant, name on the command line (kebab-case), and one
//! sentence that describes it.

macro_rules! named {
    ($(#[$attribute:meta])* $named:ident { $($variant:ident $name:literal $summary:literal)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $named {
            $(#[doc = $summary] $variant,)*
        }

        impl $named {
            fn rows() -> &'static [(Self, &'static str, &'static str)] {
                const ROWS: &[($named, &str, &str)] = &[$(($named::$variant, $name, $summary),)*];
                ROWS
            }

            /// Every one, in the order of the table.
            pub fn all() -> impl Iterator<Item = Self> {
                Self::rows().iter().map(|(one, _, _)| *one)
            }

            /// The one of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                Self::rows().iter().find(|(_, known, _)| *known == name).map(|(one, _, _)| *one)
            }

            /// The name on the command line.
            pub fn name(self) -> &'static str {
                Self::rows()[self as usize].1
            }

            /// One sentence that describes it.
            pub fn summary(self) -> &'static str {
                Self::rows()[self as usize].2
            }
        }

        impl std::fmt::Display for $named {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}
