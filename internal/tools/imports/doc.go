// Package imports holds the test that keeps the packages of this module importing in one direction.
package imports
