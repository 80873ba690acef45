// Package reference reads openapi.json into the data of the documentation pages.
package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// document is the part of an OpenAPI document that the pages show.
type document struct {
	Info struct {
		Summary, Description, Version string
	}
	Tags []struct {
		Name, Description string
	}
	Paths      ordered[pathItem]
	Components struct {
		Headers         map[string]header
		Parameters      map[string]parameter
		Responses       map[string]response
		Schemas         map[string]schema
		SecuritySchemes map[string]struct{ Description string }
	}
}

// pathItem is the operations of a path, and the parameters that all of them have.
type pathItem struct {
	Get, Put, Post, Patch, Delete *operation
	Parameters                    []parameter
}

func (p pathItem) operations() []methodOperation {
	all := []methodOperation{
		{http.MethodGet, p.Get},
		{http.MethodPut, p.Put},
		{http.MethodPost, p.Post},
		{http.MethodPatch, p.Patch},
		{http.MethodDelete, p.Delete},
	}
	return slices.DeleteFunc(all, func(o methodOperation) bool { return o.operation == nil })
}

type methodOperation struct {
	method string
	*operation
}

type operation struct {
	OperationID, Summary, Description string
	Tags                              []string
	// By scheme; nil: an API key; empty: none.
	Security    *[]map[string]any
	Parameters  []parameter
	RequestBody *requestBody
	Responses   ordered[response]
}

type parameter struct {
	Ref string `json:"$ref"`

	Name, In, Description string
	Required              bool
	Schema                schema
}

type requestBody struct {
	Description string
	Content     ordered[media]
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Headers     ordered[header]
	Content     ordered[media]
}

type header struct {
	Ref         string `json:"$ref"`
	Description string
	Schema      schema
}

type media struct {
	Schema   schema
	Examples ordered[example]
}

type example struct {
	Summary     string
	Description string // of the code of an error
	Value       json.RawMessage
	Reason      string `json:"x-error-reason"`
}

type schema struct {
	Ref         string `json:"$ref"`
	Type        types
	Format      string
	Description string
	Const       any
	Enum        []any
	Minimum     *json.Number
	Maximum     *json.Number
	Required    []string
	Properties  ordered[schema]
	Items       *schema
	OneOf       []schema
	AllOf       []schema
}

// types is the type of a schema: one, or several such as ["string", "null"].
type types []string

// UnmarshalJSON reads a string or an array of strings.
func (t *types) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*t = types{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(t))
}

// ordered is a JSON object whose names keep their order.
type ordered[T any] struct {
	names  []string
	values map[string]T
}

// UnmarshalJSON reads an object.
func (o *ordered[T]) UnmarshalJSON(text []byte) error {
	if err := json.Unmarshal(text, &o.values); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	if _, err := decoder.Token(); err != nil {
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return err
		}
		o.names = append(o.names, fmt.Sprint(name))
	}
	return nil
}

// first returns the first value and its name.
func (o ordered[T]) first() (name string, value T) {
	if len(o.names) == 0 {
		return "", value
	}
	return o.names[0], o.values[o.names[0]]
}
