//! Strings, counted in characters.

use crate::{
    budget::{Budget, Halt, elements, text_bytes},
    value::Value,
};

type Answer = Result<Value, Halt>;

fn out_of_range(index: i64) -> Value {
    Value::error(format!("index out of range: {index}"))
}

/// The text and the arguments behind it.
macro_rules! of_text {
    ($args:expr, $pattern:pat => $answer:expr) => {
        match $args {
            $pattern => $answer,
            _ => return Ok(Value::no_such_overload()),
        }
    };
}

pub(crate) fn contains(args: &[Value], budget: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text), Value::Text(part)] => {
        budget.steps(text.len() as u64 / 64)?;
        Ok(Value::Bool(text.contains(&**part)))
    })
}

pub(crate) fn starts_with(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text), Value::Text(part)] => Ok(Value::Bool(text.starts_with(&**part))))
}

pub(crate) fn ends_with(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text), Value::Text(part)] => Ok(Value::Bool(text.ends_with(&**part))))
}

pub(crate) fn char_at(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text), Value::Int(index)] => {
        let length = text.chars().count();
        Ok(match usize::try_from(*index) {
            Ok(place) if place <= length => {
                let found: String = text.chars().nth(place).into_iter().collect();
                Value::text(&found)
            }
            _ => out_of_range(*index),
        })
    })
}

/// Where the part begins at or behind the character; linear, whatever the texts are.
fn found_from(text: &str, part: &str, from: usize) -> Option<usize> {
    let (start, _) = text.char_indices().nth(from)?;
    let at = start + text[start..].find(part)?;
    Some(text[..at].chars().count())
}

pub(crate) fn index_of(args: &[Value], budget: &mut Budget) -> Answer {
    let (text, part, offset) = of_text!(args, [Value::Text(text), Value::Text(part), rest @ ..] => match rest {
        [] => (text, part, 0),
        [Value::Int(offset)] => (text, part, *offset),
        _ => return Ok(Value::no_such_overload()),
    });
    budget.steps(text.len() as u64 / 64)?;
    if part.is_empty() {
        return Ok(Value::Int(offset));
    }
    let Ok(from) = usize::try_from(offset) else { return Ok(out_of_range(offset)) };
    Ok(Value::Int(found_from(text, part, from).map_or(-1, |at| at as i64)))
}

pub(crate) fn last_index_of(args: &[Value], budget: &mut Budget) -> Answer {
    let (text, part, rest) =
        of_text!(args, [Value::Text(text), Value::Text(part), rest @ ..] => (text, part, rest));
    budget.steps(text.len() as u64 / 64)?;
    let length = text.chars().count();
    let offset = match rest {
        [] if part.is_empty() => return Ok(Value::Int(length as i64)),
        [] if text.len() < part.len() => return Ok(Value::Int(-1)),
        [] => length as i64 - 1,
        [Value::Int(offset)] if part.is_empty() => return Ok(Value::Int(*offset)),
        [Value::Int(offset)] => *offset,
        _ => return Ok(Value::no_such_overload()),
    };
    let Ok(last) = usize::try_from(offset) else { return Ok(out_of_range(offset)) };
    if last >= length {
        return Ok(Value::Int(-1));
    }
    // The part may begin at the offset and reach beyond it.
    let reach = last + part.chars().count();
    let end = text.char_indices().nth(reach).map_or(text.len(), |(at, _)| at);
    let found = text[..end].rfind(&**part).map(|at| text[..at].chars().count() as i64);
    Ok(Value::Int(found.unwrap_or(-1)))
}

pub(crate) fn lower_ascii(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text)] => Ok(Value::text(&text.to_ascii_lowercase())))
}

pub(crate) fn upper_ascii(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text)] => Ok(Value::text(&text.to_ascii_uppercase())))
}

pub(crate) fn replace(args: &[Value], _: &mut Budget) -> Answer {
    let (text, old, new, limit) = of_text!(args, [Value::Text(text), Value::Text(old), Value::Text(new), rest @ ..] => {
        match rest {
            [] => (text, old, new, usize::MAX),
            // A negative limit is none.
            [Value::Int(limit)] => (text, old, new, usize::try_from(*limit).unwrap_or(usize::MAX)),
            _ => return Ok(Value::no_such_overload()),
        }
    });
    let most = if old.is_empty() { text.chars().count() + 1 } else { text.matches(&**old).count() };
    let count = most.min(limit);
    text_bytes(count.checked_mul(new.len()).and_then(|grown| grown.checked_add(text.len())))?;
    Ok(Value::text(&text.replacen(&**old, new, count)))
}

pub(crate) fn split(args: &[Value], _: &mut Budget) -> Answer {
    let (text, separator, limit) = of_text!(args, [Value::Text(text), Value::Text(separator), rest @ ..] => match rest {
        [] => (text, separator, -1),
        [Value::Int(limit)] => (text, separator, *limit),
        _ => return Ok(Value::no_such_overload()),
    });
    let limit = match limit {
        0 => return Ok(Value::list(Vec::new())),
        limit => usize::try_from(limit).unwrap_or(usize::MAX),
    };
    if separator.is_empty() {
        return letters(text, limit);
    }
    elements(text.matches(&**separator).count().min(limit))?;
    Ok(Value::list(text.splitn(limit, &**separator).map(Value::text).collect()))
}

/// Each character, and the rest if that would be too many.
fn letters(text: &str, limit: usize) -> Answer {
    elements(text.chars().count().min(limit))?;
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if found.len() + 1 == limit {
            found.push(Value::text(rest));
            break;
        }
        found.push(Value::text(&rest[..letter.len_utf8()]));
        rest = &rest[letter.len_utf8()..];
    }
    Ok(Value::list(found))
}

pub(crate) fn substring(args: &[Value], _: &mut Budget) -> Answer {
    let (text, start, end) = of_text!(args, [Value::Text(text), Value::Int(start), rest @ ..] => match rest {
        [] => (text, *start, None),
        [Value::Int(end)] => (text, *start, Some(*end)),
        _ => return Ok(Value::no_such_overload()),
    });
    let length = text.chars().count() as i64;
    if let Some(end) = end
        && start > end
    {
        return Ok(Value::error(format!("invalid substring range. start: {start}, end: {end}")));
    }
    for index in [Some(start), end].into_iter().flatten() {
        if !(0..=length).contains(&index) {
            return Ok(out_of_range(index));
        }
    }
    let part: String =
        text.chars().skip(start as usize).take((end.unwrap_or(length) - start) as usize).collect();
    Ok(Value::text(&part))
}

pub(crate) fn trim(args: &[Value], _: &mut Budget) -> Answer {
    of_text!(args, [Value::Text(text)] => Ok(Value::text(text.trim())))
}

pub(crate) fn join(args: &[Value], _: &mut Budget) -> Answer {
    let (list, separator) = of_text!(args, [Value::List(list), rest @ ..] => match rest {
        [] => (list, ""),
        [Value::Text(separator)] => (list, &**separator),
        _ => return Ok(Value::no_such_overload()),
    });
    let mut joined = String::new();
    for (place, element) in list.iter().enumerate() {
        let Value::Text(text) = element else {
            return Ok(Value::error(format!("join: invalid input: {}", element.type_name())));
        };
        if place > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
        text_bytes(Some(joined.len()))?;
    }
    Ok(Value::text(&joined))
}

pub(crate) fn quote(args: &[Value], _: &mut Budget) -> Answer {
    let text = of_text!(args, [Value::Text(text)] => text);
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\x0b' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    text_bytes(Some(quoted.len()))?;
    Ok(Value::text(&quoted))
}
