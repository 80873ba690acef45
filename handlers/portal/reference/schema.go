package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"portal/templates"
)

// resolve returns the schema that s refers to. A description beside the reference replaces that of
// the schema.
func (r reader) resolve(s schema) (schema, error) {
	if s.Ref == "" {
		return s, nil
	}
	found, err := lookup(r.Components.Schemas, s.Ref)
	if err != nil {
		return schema{}, err
	}
	found.Description = cmp.Or(s.Description, found.Description)
	return r.resolve(found)
}

// shapes returns the shapes that a body can have: one for each schema of oneOf, otherwise one.
func (r reader) shapes(s schema) ([]templates.Shape, error) {
	s, err := r.resolve(s)
	if err != nil {
		return nil, err
	}
	if len(s.OneOf) == 0 {
		fields, err := r.fields(s)
		if err != nil || len(fields) == 0 {
			return nil, err
		}
		return []templates.Shape{{Fields: fields}}, nil
	}
	var shapes []templates.Shape
	for _, one := range s.OneOf {
		resolved, err := r.resolve(one)
		if err != nil {
			return nil, err
		}
		fields, err := r.fields(resolved)
		if err != nil {
			return nil, err
		}
		name := one.Ref[strings.LastIndexByte(one.Ref, '/')+1:]
		shapes = append(shapes, templates.Shape{Name: words(name), Fields: fields})
	}
	return shapes, nil
}

// words returns a name such as ActiveToken as words.
func words(name string) string {
	var text strings.Builder
	for i, letter := range name {
		if i > 0 && letter >= 'A' && letter <= 'Z' {
			text.WriteByte(' ')
			letter += 'a' - 'A'
		}
		text.WriteRune(letter)
	}
	return text.String()
}

// fields returns the fields of an object, or of the objects in a list.
func (r reader) fields(s schema) (fields []templates.Field, err error) {
	if s.Items != nil {
		item, err := r.resolve(*s.Items)
		if err != nil {
			return nil, err
		}
		return r.fields(item)
	}
	for _, part := range s.AllOf {
		resolved, err := r.resolve(part)
		if err != nil {
			return nil, err
		}
		more, err := r.fields(resolved)
		if err != nil {
			return nil, err
		}
		fields = append(fields, more...)
	}
	for _, name := range s.Properties.names {
		field, err := r.field(name, s.Properties.values[name], slices.Contains(s.Required, name))
		if err != nil {
			return nil, err
		}
		fields = append(fields, field)
	}
	return fields, nil
}

func (r reader) field(name string, s schema, required bool) (templates.Field, error) {
	s, err := r.resolve(s)
	if err != nil {
		return templates.Field{}, err
	}
	field := templates.Field{
		Name: name, Type: typeOf(s), Required: required, Description: templates.NewProse(s.Description),
	}
	for _, value := range s.Enum {
		field.Values = append(field.Values, fmt.Sprint(value))
	}
	if s.Const != nil {
		field.Values = []string{fmt.Sprint(s.Const)}
	}
	field.Fields, err = r.fields(s)
	return field, err
}

func (r reader) header(name string, h header) (templates.Field, error) {
	if h.Ref != "" {
		found, err := lookup(r.Components.Headers, h.Ref)
		if err != nil {
			return templates.Field{}, err
		}
		h = found
	}
	field, err := r.field(name, h.Schema, false)
	field.Description = templates.NewProse(h.Description)
	return field, err
}

// typeOf returns the type of a schema with its format or its range.
func typeOf(s schema) string {
	name := strings.Join(s.Type, " or ")
	if name == "array" {
		return "list"
	}
	if s.Format != "" {
		name += " (" + s.Format + ")"
	}
	if s.Minimum != nil && s.Maximum != nil {
		name += fmt.Sprintf(" (%s to %s)", *s.Minimum, *s.Maximum)
	}
	return name
}
