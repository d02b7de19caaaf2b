//! Literals, names, lists and maps.

use super::{BEGINNINGS, LITERALS, Parser, RESERVED, Result, Rule, Stop, Visited};
use crate::{
    ast::{Element, Entry, Expr, ExprKind},
    lexer::{Lexeme, Token},
    literals,
    value::Value,
};
use std::sync::Arc;

impl<'t> Parser<'t, '_> {
    pub(super) fn primary(&mut self, may_be_optional: bool) -> Result<Visited> {
        self.enter(Rule::Primary)?;
        let lexeme = self.peek();
        let visited = match lexeme.token {
            Token::OpenParen => {
                self.advance();
                let inner = self.expr(false)?;
                self.expect(Token::CloseParen, "')'")?;
                inner
            }
            Token::OpenBracket => self.list()?,
            Token::OpenBrace => self.map()?,
            Token::Dot | Token::Ident => self.name()?,
            _ => match self.literal()? {
                Some(expr) => Visited { expr, depth: 0 },
                None => return self.unexpected(may_be_optional),
            },
        };
        self.leave(Rule::Primary, 1);
        Ok(visited)
    }

    fn unexpected(&mut self, may_be_optional: bool) -> Result<Visited> {
        let found = self.peek();
        let question = if may_be_optional { "'?', " } else { "" };
        let expected = format!("{{{BEGINNINGS}{question}{LITERALS}");
        let begins = |token| {
            use Token::*;
            matches!(
                token,
                OpenBracket
                    | OpenBrace
                    | OpenParen
                    | Dot
                    | Minus
                    | Not
                    | True
                    | False
                    | Null
                    | Float
                    | Int
                    | Uint
                    | Text
                    | Bytes
                    | Ident
            )
        };
        if found.token != Token::End && begins(self.behind()) {
            self.syntax_error(
                found.offset,
                &format!("extraneous input '{}' expecting {expected}", found.text),
            );
            self.advance();
            self.leave(Rule::Primary, 1);
            return self.primary(false);
        }
        self.syntax_error(found.offset, &format!("mismatched input '{}' expecting {expected}", found.text));
        Err(Stop)
    }

    fn literal(&mut self) -> Result<Option<Expr>> {
        let first = self.peek();
        let sign = if first.token == Token::Minus && matches!(self.behind(), Token::Int | Token::Float) {
            self.advance();
            "-"
        } else {
            ""
        };
        let lexeme = self.peek();
        let value = match lexeme.token {
            Token::Int => literals::int(sign, lexeme.text).ok_or("invalid int literal"),
            Token::Uint => literals::uint(lexeme.text).ok_or("invalid uint literal"),
            Token::Float => literals::double(sign, lexeme.text).ok_or("invalid double literal"),
            Token::Text => literals::text(lexeme.text),
            Token::Bytes => literals::bytes(&lexeme.text[1..]),
            Token::True => Ok(Value::Bool(true)),
            Token::False => Ok(Value::Bool(false)),
            Token::Null => Ok(Value::Null),
            _ => return Ok(None),
        };
        self.advance();
        Ok(Some(match value {
            Ok(value) => Expr { id: self.id(first.offset), kind: ExprKind::Literal(value) },
            Err(message) => self.report(first.offset, message),
        }))
    }

    fn list(&mut self) -> Result<Visited> {
        let open = self.advance();
        let id = self.id(open.offset);
        let mut elements = Vec::new();
        let mut depth = 0;
        while !self.closed(Token::CloseBracket, !elements.is_empty()) {
            let optional = self.take(Token::Question).is_some();
            let element = self.expr(!optional)?;
            depth = depth.max(element.depth);
            elements.push(Element { expr: element.expr, optional });
            if self.take(Token::Comma).is_none() {
                self.expect(Token::CloseBracket, "']'")?;
                break;
            }
        }
        Ok(Visited { expr: Expr { id, kind: ExprKind::List(elements) }, depth })
    }

    /// A comma may stand before the end, and one alone.
    fn closed(&mut self, token: Token, has_elements: bool) -> bool {
        if !has_elements && self.peek().token == Token::Comma && self.behind() == token {
            self.advance();
        }
        self.take(token).is_some()
    }

    fn map(&mut self) -> Result<Visited> {
        let open = self.advance();
        let id = self.id(open.offset);
        let mut entries = Vec::new();
        let mut depth = 0;
        while !self.closed(Token::CloseBrace, !entries.is_empty()) {
            let optional = self.take(Token::Question).is_some();
            let key = self.expr(!optional)?;
            let colon = self.expect(Token::Colon, "':'")?;
            self.id(colon.offset);
            let value = self.expr(false)?;
            depth = depth.max(key.depth).max(value.depth);
            entries.push(Entry { key: key.expr, value: value.expr, optional });
            if self.take(Token::Comma).is_none() {
                self.expect(Token::CloseBrace, "'}'")?;
                break;
            }
        }
        Ok(Visited { expr: Expr { id, kind: ExprKind::Map(entries) }, depth })
    }

    /// A name, a call of a function, or a message: `a.b{field: value}`.
    fn name(&mut self) -> Result<Visited> {
        let first = self.peek();
        let leading = self.take(Token::Dot).map_or("", |_| ".");
        let Some(name) = self.take(Token::Ident) else {
            let found = self.peek();
            return self.no_name(first, found);
        };
        if let Some(message) = self.message(leading, name)? {
            return Ok(message);
        }
        let full: Arc<str> = format!("{leading}{}", name.text).into();
        if let Some(open) = self.take(Token::OpenParen) {
            let reserved = RESERVED.contains(&name.text);
            let id = self.id(open.offset);
            let (args, depth) = self.arguments()?;
            let expr = match reserved {
                true => self.report(first.offset, format!("reserved identifier: {}", name.text)),
                false => self.global_call(id, &full, args),
            };
            return Ok(Visited { expr, depth });
        }
        if RESERVED.contains(&name.text) {
            let expr = self.report(first.offset, format!("reserved identifier: {}", name.text));
            return Ok(Visited { expr, depth: 0 });
        }
        let id = self.id(name.offset);
        Ok(Visited { expr: Expr { id, kind: ExprKind::Ident(full) }, depth: 0 })
    }

    /// Looks ahead for `.name` and `{`; no message type is known, so its fields are only read over.
    fn message(&mut self, leading: &str, first: Lexeme<'t>) -> Result<Option<Visited>> {
        let token = |at: usize| self.lexemes.get(at).map_or(Token::End, |lexeme| lexeme.token);
        let mut at = self.next;
        let mut name = format!("{leading}{}", first.text);
        while token(at) == Token::Dot && token(at + 1) == Token::Ident {
            name.push('.');
            name.push_str(self.lexemes[at + 1].text);
            at += 2;
        }
        if token(at) != Token::OpenBrace {
            return Ok(None);
        }
        self.next = at;
        let open = self.advance();
        let id = self.id(open.offset);
        let mut depth = 0;
        let mut any = false;
        while !self.closed(Token::CloseBrace, any) {
            any = true;
            self.take(Token::Question);
            self.expect(Token::Ident, "IDENTIFIER")?;
            self.expect(Token::Colon, "':'")?;
            depth = depth.max(self.expr(false)?.depth);
            if self.take(Token::Comma).is_none() {
                self.expect(Token::CloseBrace, "'}'")?;
                break;
            }
        }
        Ok(Some(Visited { expr: Expr { id, kind: ExprKind::Message(name.into()) }, depth }))
    }
}
