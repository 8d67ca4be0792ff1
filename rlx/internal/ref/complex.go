package ref

import (
	"encoding/binary"
)

func init() {
	on("ComplexNormSq", complexNormSq)
	on("ComplexNormSqBackward", complexNormSqBackward)
	on("Conjugate", conjugate)
}

func complexNormSq(c *call) error {
	for i := range c.out[0].len() {
		z := c.in[0].complex(i)
		c.out[0].set(i, real(z)*real(z)+imag(z)*imag(z))
	}
	return nil
}

func complexNormSqBackward(c *call) error {
	for i := range c.out[0].len() {
		z, g := c.in[0].complex(i), c.in[1].at(i)
		c.out[0].setComplex(i, complex(2*g*real(z), 2*g*imag(z)))
	}
	return nil
}

// conjugate moves bits, so that NaN keeps its payload.
func conjugate(c *call) error {
	for i := range c.out[0].len() {
		b := binary.LittleEndian.Uint64(c.in[0].elem(i))
		binary.LittleEndian.PutUint64(c.out[0].elem(i), b^(1<<63))
	}
	return nil
}
