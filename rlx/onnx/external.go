package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rlx-ml/rlx-go/rlx/ir"
)

// opener opens a file of external data by its location in the model, which has been checked. The file is a regular one, and what is
// returned is what was checked.
type opener func(location string) (*dataFile, error)

// dataFile is an open file of external data.
type dataFile struct {
	io.ReaderAt
	io.Closer
	size int64
}

// WithFile lets tensors lie in files beside the model file: in its folder, or, if the model file is a symbolic link, in the folder that
// holds what it points to. Links are followed where they stay inside.
func WithFile(model string) Option {
	return func(o *options) {
		o.files = func(location string) (*dataFile, error) { return openBeside(model, location) }
	}
}

// WithFS lets tensors lie in files of fsys in the folder of the model file.
func WithFS(fsys fs.FS, model string) Option {
	return func(o *options) {
		o.files = func(location string) (*dataFile, error) { return openFS(fsys, model, location) }
	}
}

// placed is where the data of a tensor lie in another file.
type placed struct {
	location       string
	offset, length int64
}

// placeOf checks what a tensor says of its data, before the file system is touched.
func placeOf(t *TensorProto, files opener) (placed, error) {
	fields := map[string]string{}
	for _, e := range t.ExternalData {
		if _, twice := fields[e.Key]; twice {
			return placed{}, t.fail(ErrExternal, "%s is given twice, expected no duplicate", e.Key)
		}
		fields[e.Key] = e.Value
	}
	o := placed{location: fields["location"]}
	if err := checkLocation(o.location); err != nil {
		return o, t.fail(ErrExternal, "location %q: %v", o.location, err)
	}
	if files == nil {
		return o, t.fail(ErrExternal, "location %q: the model was not read from a folder", o.location)
	}
	need, err := t.ByteSize()
	if err != nil {
		return o, err
	}
	if o.offset, err = extent(fields, "offset", 0); err == nil {
		o.length, err = extent(fields, "length", need)
	}
	switch {
	case err != nil:
		return o, t.fail(ErrExternal, "%v", err)
	case o.length != need:
		return o, t.fail(ErrExternal, "location %q: length is %d, dims %d of %s need %d bytes", o.location, o.length, t.Dims, DataTypeName(t.DataType), need)
	}
	return o, nil
}

// open opens the file and checks that the data are in it.
func (o placed) open(t *TensorProto, files opener) (*dataFile, error) {
	f, err := files(o.location)
	if err != nil {
		return nil, t.fail(ErrExternal, "location %q: %v", o.location, err)
	}
	if o.offset > f.size || o.length > f.size-o.offset {
		f.Close()
		return nil, t.fail(ErrExternal, "location %q: offset %d and length %d, the file has %d bytes", o.location, o.offset, o.length, f.size)
	}
	return f, nil
}

// externalBytes reads the data of a tensor that lies in another file.
func externalBytes(t *TensorProto, s *store) ([]byte, error) {
	o, err := placeOf(t, s.files)
	if err != nil {
		return nil, err
	}
	f, err := o.open(t, s.files)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := s.take(fmt.Sprintf("tensor %q", t.Name), o.length); err != nil {
		return nil, err
	}
	data, err := ir.Alloc(o.length)
	if err != nil {
		return nil, t.fail(ErrExternal, "location %q: %v", o.location, err)
	}
	if _, err := f.ReadAt(data, o.offset); err != nil && o.length > 0 {
		return nil, t.fail(ErrExternal, "location %q: %v", o.location, err)
	}
	return data, nil
}

// checkOutside checks a tensor whose data lie in another file as far as that goes without reading them.
func checkOutside(t *TensorProto, files opener) error {
	if _, reason := dtype(t.DataType); t.DataLocation != LocationExternal || reason != "" {
		return nil
	}
	o, err := placeOf(t, files)
	if err != nil {
		return err
	}
	f, err := o.open(t, files)
	if err != nil {
		return err
	}
	return f.Close()
}

// extent is a decimal number that is not negative.
func extent(fields map[string]string, name string, def int64) (int64, error) {
	s, ok := fields[name]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%s is %q, expected a number from 0 to 2^63-1", name, s)
	}
	return int64(n), nil
}

// checkLocation takes relative paths of plain components alone, before the file system is touched.
func checkLocation(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case strings.ContainsAny(s, "\\\x00"):
		return errors.New("holds a backslash or NUL")
	case strings.HasPrefix(s, "/"), len(s) >= 2 && s[1] == ':':
		return errors.New("is absolute, expected a path in the model's folder")
	case !fs.ValidPath(s) || s == ".":
		return errors.New("is no plain relative path: components . and .. and empty ones are not allowed")
	}
	return nil
}

// openBeside opens a file in the folder of the model.
func openBeside(model, location string) (*dataFile, error) {
	name := filepath.Join(filepath.Dir(model), filepath.FromSlash(location))
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, bareError(err)
	}
	folders := []string{filepath.Dir(model)}
	if info, err := os.Lstat(model); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if target, err := filepath.EvalSymlinks(model); err == nil {
			folders = append(folders, filepath.Dir(target))
		}
	}
	for _, folder := range folders {
		folder, err := filepath.EvalSymlinks(folder)
		if err != nil {
			return nil, bareError(err)
		}
		if rel, err := filepath.Rel(folder, real); err == nil && filepath.IsLocal(rel) {
			return openInside(folder, rel)
		}
	}
	return nil, errors.New("leads out of the model's folder")
}

// openInside opens a file that stays inside of folder even if links change meanwhile. What is no regular file is not opened: a pipe
// would block.
func openInside(folder, rel string) (*dataFile, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, bareError(err)
	}
	defer root.Close()
	info, err := root.Lstat(rel)
	if err == nil {
		err = plainFile(info)
	}
	if err != nil {
		return nil, bareError(err)
	}
	f, err := root.OpenFile(rel, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, bareError(err)
	}
	if info, err = f.Stat(); err == nil {
		err = plainFile(info)
	}
	if err != nil {
		f.Close()
		return nil, bareError(err)
	}
	return &dataFile{f, f, info.Size()}, nil
}

func plainFile(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("is %s, expected a regular file", info.Mode().Type())
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("has %d hard links, expected one", n)
	}
	return nil
}

// bareError is err without the path, which the caller names as the model does.
func bareError(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// openFS opens a file of fsys in the model's folder.
func openFS(fsys fs.FS, model, location string) (*dataFile, error) {
	name := path.Join(path.Dir(model), location)
	if !fs.ValidPath(name) {
		return nil, errors.New("leads out of the file system")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, bareError(err)
	}
	info, err := f.Stat()
	if err == nil {
		err = plainFile(info)
	}
	if err != nil {
		f.Close()
		return nil, bareError(err)
	}
	if r, ok := f.(io.ReaderAt); ok {
		return &dataFile{r, f, info.Size()}, nil
	}
	return &dataFile{&forward{f: f}, f, info.Size()}, nil
}

// forward reads a file that can only be read from front to back, once.
type forward struct {
	f  io.Reader
	at int64
}

func (r *forward) ReadAt(p []byte, offset int64) (int, error) {
	if _, err := io.CopyN(io.Discard, r.f, offset-r.at); err != nil {
		return 0, err
	}
	n, err := io.ReadFull(r.f, p)
	r.at = offset + int64(n)
	return n, err
}
