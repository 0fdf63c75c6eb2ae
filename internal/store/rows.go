package store

import (
	"context"
	"fmt"
)

// rowsOf returns what a query finds, in its order; dest says where the columns of a row
// go. doing is what an error is of.
func rowsOf[T any](ctx context.Context, t *Tx, doing string, dest func(*T) []any, query string, args ...any) (list []T, err error) {
	err = t.rows(ctx, doing, func() []any {
		list = append(list, *new(T))
		return dest(&list[len(list)-1])
	}, query, args)
	return list, err
}

// rows is rowsOf for whoever keeps the rows: next says where the columns of another one go.
func (t *Tx) rows(ctx context.Context, doing string, next func() []any, query string, args []any) error {
	return wrap(t.each(ctx, func(scan func(...any) error) error { return scan(next()...) }, query, args...), doing)
}

// rowOf returns the row that a query finds; fault.NotFound says what there is none of.
func rowOf[T any](ctx context.Context, t *Tx, what string, dest func(*T) []any, query string, args ...any) (row T, err error) {
	ok, err := t.one(ctx, dest(&row), query, args...)
	if err = missing(ok, err, what); err != nil {
		row = *new(T) // it may have been read in part
	}
	return row, err
}

// found makes the result of a read by id.
func found[T any](value T, ok bool, err error, what string) (T, error) {
	if err := missing(ok, err, what); err != nil {
		return *new(T), err
	}
	return value, nil
}

// missing is the error of a read by id.
func missing(ok bool, err error, what string) error {
	if err != nil {
		return fmt.Errorf("read %s: %w", what, err)
	}
	if !ok {
		return notFound(what)
	}
	return nil
}

// exists reports whether a query finds anything. It selects 1.
func (t *Tx) exists(ctx context.Context, query string, args ...any) (bool, error) {
	var one int
	return t.one(ctx, []any{&one}, query, args...)
}

// require is exists for what has to be there; fault.NotFound says what there is none of.
func (t *Tx) require(ctx context.Context, what, query string, args ...any) error {
	ok, err := t.exists(ctx, query, args...)
	return missing(ok, err, what)
}

// ids returns the only column of a query, which is of ids.
func (t *Tx) ids(ctx context.Context, query string, args ...any) (list []string, err error) {
	err = t.each(ctx, func(scan func(dest ...any) error) error {
		var id string
		err := scan(text{&id})
		list = append(list, id)
		return err
	}, query, args...)
	return list, err
}

// run runs a statement that may touch any number of rows. doing is what an error is of.
func (t *Tx) run(ctx context.Context, doing, query string, args ...any) error {
	_, err := t.exec(ctx, query, args...)
	return wrap(err, doing)
}

// runAll is run for several statements of the same arguments, one after the other.
func (t *Tx) runAll(ctx context.Context, doing string, queries []string, args ...any) error {
	for _, query := range queries {
		if err := t.run(ctx, doing, query, args...); err != nil {
			return err
		}
	}
	return nil
}

// change runs a statement that has to touch a row; fault.NotFound says what there is none
// of.
func (t *Tx) change(ctx context.Context, doing, what, query string, args ...any) error {
	n, err := t.exec(ctx, query, args...)
	if err == nil && n == 0 {
		return notFound(what)
	}
	return wrap(err, doing)
}
