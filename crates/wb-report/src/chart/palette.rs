//! The colours of charts and pages, for light and dark backgrounds.
//!
//! Lines use the set of Okabe and Ito (2008), which is distinguishable with common colour vision deficiencies. Colour
//! never carries meaning alone; a shape or a word repeats it.

/// Name, colour on a light background, colour on a dark background.
pub(crate) const PALETTE: [(&str, &str, &str); 17] = [
    ("paper", "#fdfdfc", "#15171a"),
    ("raised", "#f5f5f2", "#1e2125"),
    ("ink", "#1c1e21", "#e4e5e3"),
    ("quiet", "#5c6167", "#a2a7ad"),
    ("rule", "#dcdcd6", "#353a40"),
    ("grid", "#e8e8e3", "#2a2e33"),
    ("accent", "#0b5f9e", "#6db6ea"),
    ("band", "#cfe1ef", "#1f3d55"),
    ("box", "#e3e7eb", "#30363d"),
    ("good", "#1c6b48", "#67c79d"),
    ("doubtful", "#8f5300", "#e8ab4f"),
    ("bad", "#b3261e", "#f2857c"),
    ("blush", "#f6d8d3", "#542a27"),
    ("line-0", "#0b5f9e", "#6db6ea"),
    ("line-1", "#c05200", "#f0925a"),
    ("line-2", "#00795c", "#4cc7a3"),
    ("line-3", "#a04f83", "#dd9cc4"),
];

pub(crate) fn css_variables() -> String {
    let declarations = |pick: fn(&(&str, &'static str, &'static str)) -> &'static str| -> String {
        PALETTE.iter().map(|colour| format!("--{}:{};", colour.0, pick(colour))).collect()
    };
    let (light, dark) = (declarations(|colour| colour.1), declarations(|colour| colour.2));
    format!(
        ":root{{color-scheme:light dark;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}\n"
    )
}

/// Replaces the variables in a style sheet by the light colours, for viewers without support for variables.
pub(crate) fn inline_variables(css: &str) -> String {
    PALETTE.iter().fold(css.to_owned(), |css, (name, light, _)| css.replace(&format!("var(--{name})"), light))
}
