package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

const module = "tare"

// source is one parsed file that is not a test.
type source struct {
	folder string // from the module's root: "internal/plan"
	file   *ast.File
	fset   *token.FileSet
}

// sources parses every Go file below cmd and internal that is not a test.
func sources(root fs.FS) (found []source, err error) {
	for _, top := range []string{"cmd", "internal"} {
		err := fs.WalkDir(root, top, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && d.Name() != "testdata" {
				return err
			}
			if d.IsDir() {
				return fs.SkipDir
			}
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			text, err := fs.ReadFile(root, name)
			if err != nil {
				return err
			}
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, name, text, 0)
			if err != nil {
				return err
			}
			found = append(found, source{folder: path.Dir(name), file: f, fset: fset})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// faults lists every breach of the rules in s, each with its place.
func (s source) faults() (all []string) {
	fault := func(at token.Pos, format string, args ...any) {
		all = append(all, fmt.Sprintf("%s: ", s.fset.Position(at))+fmt.Sprintf(format, args...))
	}
	if _, ok := imports[s.folder]; !ok {
		fault(s.file.Package, "%s has no row in the import table", s.folder)
	}
	for part := range strings.SplitSeq(s.folder, "/") {
		if slices.Contains(nameless, part) {
			fault(s.file.Package, "a folder named %q says nothing", part)
		}
	}
	for _, spec := range s.file.Imports {
		s.importFaults(spec, fault)
	}
	s.codeFaults(fault)
	return all
}

func (s source) importFaults(spec *ast.ImportSpec, fault func(token.Pos, string, ...any)) {
	target := importPath(spec)
	if ours, ok := strings.CutPrefix(target, module+"/"); ok && !slices.Contains(imports[s.folder], ours) {
		fault(spec.Pos(), "%s may not import %s", s.folder, ours)
	}
	s.checkBan(spec.Pos(), target, fault)
}

// codeFaults looks at what is called: banned names, goroutines, init.
func (s source) codeFaults(fault func(token.Pos, string, ...any)) {
	names := s.importNames()
	ast.Inspect(s.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && names[x.Name] != "" {
				s.checkBan(n.Pos(), names[x.Name]+"."+n.Sel.Name, fault)
			}
		case *ast.GoStmt:
			if within(s.folder, noGoroutines) {
				fault(n.Pos(), "%s starts no goroutines", s.folder)
			}
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				fault(n.Pos(), "init runs unasked")
			}
		}
		return true
	})
}

func (s source) checkBan(at token.Pos, name string, fault func(token.Pos, string, ...any)) {
	for _, b := range bans {
		if within(s.folder, b.in) && !within(s.folder, b.except) && slices.Contains(b.names, name) {
			fault(at, "%s may not use %s: %s", s.folder, name, b.why)
		}
	}
}

// importNames maps the names by which the file calls its imports to their paths.
func (s source) importNames() map[string]string {
	names := map[string]string{}
	for _, spec := range s.file.Imports {
		target := importPath(spec)
		name := path.Base(target)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = target
	}
	return names
}

func importPath(spec *ast.ImportSpec) string {
	p, _ := strconv.Unquote(spec.Path.Value) // the parser has checked it
	return p
}

// within reports whether folder is one of the roots or below one.
func within(folder string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return folder == root || strings.HasPrefix(folder, root+"/")
	})
}
