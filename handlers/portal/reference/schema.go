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
func (r *reader) resolve(s schema) schema {
	if s.Ref == "" {
		return s
	}
	found := lookup(r, r.Components.Schemas, s.Ref)
	found.Description = cmp.Or(s.Description, found.Description)
	return r.resolve(found)
}

// shapes returns the shapes that a body can have: one for each schema of oneOf, otherwise one.
func (r *reader) shapes(s schema) (shapes []templates.Shape) {
	s = r.resolve(s)
	for _, one := range s.OneOf {
		name := one.Ref[strings.LastIndexByte(one.Ref, '/')+1:]
		shapes = append(shapes, templates.Shape{Name: words(name), Fields: r.fields(r.resolve(one))})
	}
	if fields := r.fields(s); len(s.OneOf) == 0 && len(fields) > 0 {
		shapes = []templates.Shape{{Fields: fields}}
	}
	return shapes
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
func (r *reader) fields(s schema) (fields []templates.Field) {
	if s.Items != nil {
		return r.fields(r.resolve(*s.Items))
	}
	for _, part := range s.AllOf {
		fields = append(fields, r.fields(r.resolve(part))...)
	}
	for _, name := range s.Properties.names {
		fields = append(fields, r.field(name, s.Properties.values[name], slices.Contains(s.Required, name)))
	}
	return fields
}

func (r *reader) field(name string, s schema, required bool) templates.Field {
	s = r.resolve(s)
	field := templates.Field{
		Name: name, Type: typeOf(s), Required: required, Description: templates.NewProse(s.Description),
		Fields: r.fields(s),
	}
	for _, value := range s.Enum {
		field.Values = append(field.Values, fmt.Sprint(value))
	}
	if s.Const != nil {
		field.Values = []string{fmt.Sprint(s.Const)}
	}
	return field
}

func (r *reader) header(name string, h header) templates.Field {
	if h.Ref != "" {
		h = lookup(r, r.Components.Headers, h.Ref)
	}
	field := r.field(name, h.Schema, false)
	field.Description = templates.NewProse(h.Description)
	return field
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
